"""An intervention: which heads are ablated together, and what stands in their place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

from headcount.errors import UsageError
from headcount.heads import Head, check_heads, parse_heads
from headcount.models.anatomy import Anatomy

__all__ = [
    "MODES",
    "Intervention",
    "Mode",
    "check_interventions",
    "check_mode",
    "others",
    "sets",
    "single_heads",
    "whole_layers",
]

Mode = Literal["zero", "mean", "uniform", "resample"]
MODES: tuple[str, ...] = get_args(Mode)


def check_mode(mode: str) -> Mode:
    """The mode, if there is one of that name.

    >>> check_mode("shuffle")
    Traceback (most recent call last):
    headcount.errors.UsageError: There is no mode 'shuffle' of ablation; choose zero, mean, uniform
    or resample.
    """
    if mode not in MODES:
        raise UsageError(
            f"There is no mode '{mode}' of ablation; choose {', '.join(MODES[:-1])} or {MODES[-1]}."
        )
    return mode  # type: ignore[return-value]


@dataclass(frozen=True)
class Intervention:
    """Heads that are ablated together; none at all is the model as it is.

    >>> Intervention("enc.0.1,enc.0.0").heads
    (Head(stack='enc', layer=0, index=0), Head(stack='enc', layer=0, index=1))
    """

    heads: tuple[Head, ...]
    mode: Mode = "zero"
    #: What messages and journals call it, unlike any other of its sweep.
    name: str = field(default="")

    def __init__(
        self, heads: str | Iterable[str | Head], mode: Mode = "zero", name: str = ""
    ) -> None:
        """Take heads or their names, in any order."""
        chosen = tuple(sorted(set(parse_heads(heads))))
        object.__setattr__(self, "heads", chosen)
        object.__setattr__(self, "mode", check_mode(mode))
        object.__setattr__(self, "name", name or _name(chosen, mode))


def single_heads(anatomy: Anatomy, mode: Mode = "zero") -> list[Intervention]:
    """Every head alone (Michel et al. 2019, section 3.2)."""
    return [Intervention([head], mode) for head in anatomy.heads]


def others(anatomy: Anatomy, mode: Mode = "zero") -> list[Intervention]:
    """For every head, all others of its layer (Michel et al. 2019, section 3.3)."""
    return [
        Intervention([other for other in site.names if other != head], mode, f"all but {head}")
        for site in anatomy.sites
        for head in site.names
    ]


def whole_layers(anatomy: Anatomy, mode: Mode = "zero") -> list[Intervention]:
    """Every layer of every stack (Kovaleva et al. 2019, section 4.5)."""
    return [
        Intervention(site.names, mode, f"layer {site.stack}.{site.layer}") for site in anatomy.sites
    ]


def sets(
    named: Mapping[str, str | Iterable[str | Head]], mode: Mode = "zero"
) -> list[Intervention]:
    """Any sets of heads, by name.

    >>> [one.name for one in sets({"ends": "enc.0.0,enc.5.0"})]
    ['ends']
    """
    return [Intervention(heads, mode, name) for name, heads in named.items()]


def check_interventions(interventions: Sequence[Intervention], known: list[Head]) -> None:
    """Refuse heads that do not exist, and two interventions of one name."""
    if not interventions:
        raise UsageError("There is nothing to ablate; give one intervention or more.")
    for one in interventions:
        check_heads(one.heads, known)
    names = [one.name for one in interventions]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UsageError(f"Two interventions are called '{twice}'; give each a name of its own.")


def _name(heads: Sequence[Head], mode: Mode) -> str:
    words = ",".join(map(str, heads)) or "no heads"
    return words if mode == "zero" else f"{words} {mode}"
