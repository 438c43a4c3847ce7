"""Antecedents without a model: the nearest mention, the same word, and four sieves of rules.

Clark et al., BlackBoxNLP 2019, section 4.3 and Table 2, measure heads against these; the sieves are
a small version of Lee et al. 2011.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from headcount.tallies.concord import agree
from headcount.tallies.mentions import Mention

__all__ = ["BASELINES", "before", "head_match", "nearest", "rules"]

Pick = Callable[[Mention, Sequence[Mention]], Mention | None]


def before(mention: Mention, mentions: Sequence[Mention]) -> list[Mention]:
    """The mentions whose head words stand before this one's, the nearest first.

    A mention inside it or around it is no candidate: *his* is not *his mother*.
    """
    earlier = [
        other for other in mentions if other.head < mention.head and not other.overlaps(mention)
    ]
    return sorted(earlier, key=lambda other: (-other.head, other.span, other.entity))


def nearest(mention: Mention, candidates: Sequence[Mention]) -> Mention | None:
    """The nearest mention, whatever it is."""
    return candidates[0] if candidates else None


def head_match(mention: Mention, candidates: Sequence[Mention]) -> Mention | None:
    """The nearest mention with the same head word; none where there is none."""
    return _first(candidates, lambda other: other.word == mention.word)


def rules(mention: Mention, candidates: Sequence[Mention]) -> Mention | None:
    """The nearest mention that the earliest sieve lets through.

    Sieves: the same words; the same head word; number, gender and person agree; any mention.
    """
    sieves: tuple[Callable[[Mention], bool], ...] = (
        lambda other: other.text == mention.text,
        lambda other: other.word == mention.word,
        lambda other: agree(other.concord, mention.concord),
        lambda other: True,
    )
    found = (_first(candidates, sieve) for sieve in sieves)
    return next((other for other in found if other is not None), None)


#: By name, the simplest first.
BASELINES: dict[str, Pick] = {"nearest": nearest, "head match": head_match, "rules": rules}


def _first(candidates: Sequence[Mention], test: Callable[[Mention], bool]) -> Mention | None:
    return next((other for other in candidates if test(other)), None)
