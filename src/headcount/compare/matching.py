"""Which heads of two models answer to each other: those of the same name."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from headcount.errors import UsageError
from headcount.heads import Head
from headcount.models.site import Site
from headcount.subject import Subject

__all__ = ["Matched", "match_sites"]


@dataclass(frozen=True)
class Matched:
    """A layer of both models, and where the heads that both have lie side by side in each."""

    first: Site
    second: Site
    heads: tuple[Head, ...]
    first_rows: tuple[int, ...]
    second_rows: tuple[int, ...]


def match_sites(first: Subject, second: Subject, stacks: Collection[str]) -> list[Matched]:
    """Every layer's common heads; other numbers of layers or heads are refused.

    Heads keep their names for life, so a pruned model is matched by name, and heads that one of
    the two has lost are left out.
    """
    for stack in stacks:
        _check_same_shape(first, second, stack)
    ours = {(site.stack, site.layer): site for site in first.anatomy.sites}
    theirs = {(site.stack, site.layer): site for site in second.anatomy.sites}
    found = [
        _matched(site, theirs[place])
        for place, site in ours.items()
        if place in theirs and site.stack in stacks
    ]
    found = [one for one in found if one.heads]
    if not found:
        raise UsageError(
            f"{first.name} and {second.name} have no head of the same name; compare a model with "
            "one that came from it."
        )
    return found


def _matched(first: Site, second: Site) -> Matched:
    common = [head for head in first.names if head in set(second.names)]
    return Matched(
        first,
        second,
        tuple(common),
        tuple(first.names.index(head) for head in common),
        tuple(second.names.index(head) for head in common),
    )


def _check_same_shape(first: Subject, second: Subject, stack: str) -> None:
    """Refuse what cannot be the same model before and after: only heads may be lost on the way."""
    one, other = (_sizes(subject, stack) for subject in (first, second))
    if _has_gaps(first) or _has_gaps(second):
        return
    if len(one) != len(other):
        raise UsageError(
            f"{first.name} has {_count(len(one), 'layer')} in {stack} and {second.name} has "
            f"{len(other)}, so their heads do not answer to each other; compare models of the "
            "same shape."
        )
    for layer, heads in one.items():
        if heads != other.get(layer):
            raise UsageError(
                f"{stack}.{layer} has {_count(heads, 'head')} in {first.name} and "
                f"{other.get(layer, 0)} in {second.name}, so they do not answer to each other; "
                "compare models of the same shape, or a pruned model saved by headcount."
            )


def _sizes(subject: Subject, stack: str) -> dict[int, int]:
    return {site.layer: site.heads for site in subject.anatomy.sites if site.stack == stack}


def _has_gaps(subject: Subject) -> bool:
    """Whether heads were removed, and the others kept their names."""
    return any(site.numbers is not None for site in subject.anatomy.sites)


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
