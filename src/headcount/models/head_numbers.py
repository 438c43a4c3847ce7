"""Heads keep their numbers for life: a model from which some were removed says which are left.

The numbers stand in `config.headcount`, so that they go wherever the config goes: a copy, a
folder that `save_pretrained` wrote, a checkpoint in the middle of training.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from headcount.models.find import Found
from headcount.models.site import Site

__all__ = ["KEY", "MAP", "heads_left", "numbered", "restore_numbers"]

#: The attribute of the config.
KEY = "headcount"

#: The file in a saved folder that names its heads and says how it was saved.
MAP = "headcount.json"


def heads_left(config: Any) -> dict[str, list[int]] | None:
    """The numbers of the heads of each layer, ``{"enc.0": [0, 3]}``; none for a whole model."""
    kept = getattr(config, KEY, None)
    return kept["heads"] if isinstance(kept, dict) and "heads" in kept else None


def restore_numbers(found: Found, config: Any) -> None:
    """Take the numbers from the map in a folder whose config has lost them."""
    file = found.folder / MAP
    if found.kind != "folder" or not file.is_file() or heads_left(config) is not None:
        return
    heads = json.loads(file.read_text(encoding="utf8"))["heads"]
    if heads is not None:
        setattr(config, KEY, {"heads": heads})


def numbered(core: Any, sites: Sequence[Site]) -> list[Site]:
    """Sites whose heads bear the numbers they were born with; layers without heads are left out.

    Such a layer still runs one dead head, which gives nothing and has no name.
    """
    left = heads_left(core.config)
    if left is None:
        return list(sites)
    if any(site.heads != max(1, len(left.get(_key(site), ()))) for site in sites):
        warnings.warn(
            f"The config of this {type(core).__name__} names the heads that were left by an "
            "earlier removal, but they are not those of the model; heads are numbered afresh.",
            stacklevel=2,
        )
        return list(sites)
    named = [replace(site, numbers=tuple(left[_key(site)])) for site in sites]
    return [site for site in named if site.numbers]


def _key(site: Site) -> str:
    return f"{site.stack}.{site.layer}"
