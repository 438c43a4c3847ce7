"""Load the model that a command names, and say so while it takes its time."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from headcount.cli.progress import told

if TYPE_CHECKING:
    from headcount.subject import Subject

__all__ = ["loaded"]


def loaded(
    model: str,
    *,
    device: str = "auto",
    dtype: str = "auto",
    revision: str | None = None,
    allow_bin: bool = False,
    trust_remote_code: bool = False,
    tokenizer: str | None = None,
) -> Subject:
    """The model; what there is to note about it stands in its `notes` instead of a warning."""
    with told(f"Loading {model}"), warnings.catch_warnings(action="ignore"):
        from headcount.models.load import load

        return load(
            model,
            device=device,
            dtype=dtype,
            revision=revision,
            allow_bin=allow_bin,
            trust_remote_code=trust_remote_code,
            tokenizer=tokenizer,
        )
