"""A needle in a haystack: a made-up fact somewhere in a long text, and the question for it.

Wu et al. 2024, "Retrieval head mechanistically explains long-context factuality", section 2. The
needle is a sentence of this project's own with random words in it, so that no model can know the
answer; the end of the text begins the sentence again, and the model has to go on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from headcount.errors import UsageError
from headcount.subject import Subject
from headcount.trials.stream import Stream, stream_of
from headcount.trials.wrapping import wrapping_of

__all__ = ["Haystack", "haystacks", "needles"]

_PEOPLE = ("Mara", "Tobin", "Ilse", "Corin", "Nadia", "Pavel", "Selma", "Oskar", "Yusuf", "Greta")
_LOOKS = ("copper", "striped", "hollow", "velvet", "rusty", "crooked", "golden", "frozen", "salted")
_THINGS = ("lantern", "kettle", "ladder", "violin", "anchor", "basket", "mirror", "whistle", "drum")
_PLACES = ("willow", "chapel", "bakery", "harbour", "quarry", "orchard", "stable", "cellar", "mill")
_BEASTS = ("goose", "badger", "otter", "donkey", "heron", "lizard", "camel", "rooster", "beetle")


@dataclass(frozen=True)
class Haystack:
    """One example: token ids, where the needle's answer stands, and the rows that repeat it."""

    ids: tuple[int, ...]
    #: The first place of the answer inside the needle.
    needle: int
    #: The answer's ids; they also end `ids`.
    answer: tuple[int, ...]
    depth: float

    @property
    def rows(self) -> slice:
        """The rows that predict the answer's tokens at the end."""
        return slice(len(self.ids) - len(self.answer) - 1, len(self.ids) - 1)

    def answering(self, answer: Sequence[int]) -> Haystack:
        """The same example with another answer said at its end."""
        said = self.ids[: len(self.ids) - len(self.answer)]
        return replace(self, ids=(*said, *answer))


def needles(count: int, rng: np.random.Generator) -> Iterator[tuple[str, str]]:
    """Beginnings and answers: a person, and where that person hid what.

    >>> "".join(next(needles(1, np.random.default_rng(0))))
    'The secret of Yusuf is that the crooked anchor lies behind the bakery of the hollow goose'
    """
    for _ in range(count):
        person, look, thing, place, other, beast = (
            str(rng.choice(words)) for words in (_PEOPLE, _LOOKS, _THINGS, _PLACES, _LOOKS, _BEASTS)
        )
        fact = f" the {look} {thing} lies behind the {place} of the {other} {beast}"
        yield f"The secret of {person} is that", fact


def haystacks(
    subject: Subject,
    texts: Sequence[str],
    lengths: Sequence[int],
    depths: Sequence[float],
    each: int,
    seed: int,
) -> list[Haystack]:
    """Examples of every length and depth, `each` of them, shortest first."""
    _check(lengths, depths, each)
    rng = np.random.default_rng(seed)
    stream = stream_of(subject, texts)
    places = [(length, depth) for length in lengths for depth in depths for _ in range(each)]
    asked = zip(places, needles(len(places), rng), strict=True)
    return [
        _haystack(subject, stream, length, depth, needle, int(rng.integers(0, len(stream) or 1)))
        for (length, depth), needle in asked
    ]


def _haystack(
    subject: Subject, stream: Stream, length: int, depth: float, needle: tuple[str, str], start: int
) -> Haystack:
    """Text, needle, text, and the needle's beginning again, exactly `length` tokens with it all."""
    stem, fact = needle
    front = list(wrapping_of(subject).before)
    told, answer, stop = (stream_of(subject, [f" {part}"]).ids for part in (stem, fact[1:], "."))
    asked = stream_of(subject, [f"\n\n{stem}"]).ids
    room = length - len(front) - len(told) - 2 * len(answer) - len(stop) - len(asked)
    if room < 1:
        raise UsageError(
            f"A haystack of {length} tokens has no room for its needle; use {length - room + 1} "
            "or more."
        )
    hay = stream.cut(start, room)
    above = round(depth * room)
    before = [*front, *hay[:above], *told]
    ids = [*before, *answer, *stop, *hay[above:], *asked, *answer]
    return Haystack(tuple(ids), len(before), tuple(answer), depth)


def _check(lengths: Sequence[int], depths: Sequence[float], each: int) -> None:
    if not lengths or not depths or each < 1:
        raise UsageError("A haystack needs a length, a depth and an example; give one or more.")
    for depth in depths:
        if not 0 <= depth <= 1:
            raise UsageError(f"The depth of a needle is {depth}; it lies between 0 and 1.")
