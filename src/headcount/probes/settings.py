"""How a probe is trained: by headcount's choice, or as Clark et al. did."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

import torch

from headcount.errors import UsageError
from headcount.text.words import Rows

__all__ = ["KINDS", "Settings", "check_kind", "settings_for"]

#: The probes, and the baselines that are probes of something less; the best is expected last.
KINDS = ("right-branching", "random-init", "distances", "attention", "words")
#: Kinds that look words up.
WITH_WORDS = ("random-init", "distances", "words")
#: Kinds that look at maps.
WITH_MAPS = ("random-init", "attention", "words")
_CONVENTIONS = ("headcount", "paper", "code")


@dataclass(frozen=True)
class Settings:
    """Training with Adam: mini-batches in random order, the learning rate falling to 0 at the end.

    `paper` and `code` train as the authors: one sentence a step, in the order of the treebank,
    one epoch, a learning rate of 0.002. The loss is the mean over a batch's sentences of the sum
    over their words, so a rate means the same for every batch size.
    """

    convention: str = "headcount"
    #: How the rows of a word's pieces become one.
    rows: Rows = "mean"
    rate: float = 0.01
    epochs: int = 5
    #: Sentences a step.
    batch: int = 16
    #: Maps are kept in half precision, so that a treebank's fit in memory.
    dtype: torch.dtype = torch.float16

    @property
    def as_authors(self) -> bool:
        """Whether sentences come one at a time, in their order."""
        return self.convention != "headcount"

    @property
    def shifted(self) -> bool:
        """Whether words stand one candidate off, as in the authors' program."""
        return self.convention == "code"

    def to_dict(self) -> dict[str, Any]:
        """The settings as plain words and numbers."""
        return {**asdict(self), "dtype": str(self.dtype).removeprefix("torch.")}


def settings_for(convention: str = "headcount", kind: str = "attention", **given: Any) -> Settings:
    """The settings of a convention, with what was given in place of theirs.

    >>> settings_for("code").batch, settings_for("code", epochs=2).epochs
    (1, 2)
    """
    if convention not in _CONVENTIONS:
        raise UsageError(
            f"There is no convention '{convention}'; choose {', '.join(_CONVENTIONS)}."
        )
    usual = Settings(rate=_RATES.get(kind, 0.01))
    if convention != "headcount":
        rows: Rows = "first" if convention == "code" else "mean"
        usual = Settings(convention, rows, 0.002, 1, 1, torch.float32)
    return _checked(replace(usual, **{k: v for k, v in given.items() if v is not None}))


#: Learning rates that did best on the development part of UD English EWT, by kind.
_RATES = {"attention": 0.1, "words": 0.01, "random-init": 0.3, "distances": 0.01}


def check_kind(kind: str) -> None:
    """Refuse what is no probe."""
    if kind not in KINDS:
        raise UsageError(f"There is no probe '{kind}'; choose {', '.join(KINDS)}.")


def _checked(settings: Settings) -> Settings:
    for name in ("rate", "epochs", "batch"):
        value = getattr(settings, name)
        if value <= 0:
            raise UsageError(f"The probe's {name} is {value}; it must be above 0.")
    return settings
