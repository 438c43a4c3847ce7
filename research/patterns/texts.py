"""Texts for maps, all of the bundled sample: single sentences, pairs, and long ones of both."""

from __future__ import annotations

import random
from typing import NamedTuple

from headcount.bundle import sample


class Given(NamedTuple):
    """A text, or two, by the places of their sentences in the sample."""

    kind: str
    first: tuple[int, ...]
    second: tuple[int, ...] = ()

    def texts(self, translated: bool) -> str | tuple[str, str]:
        """What the model reads; a translator reads English and German of the same sentences."""
        pairs = sample.pairs()
        one = " ".join(pairs[place][0] for place in self.first)
        if translated:
            return one, " ".join(pairs[place][1] for place in self.first)
        return (one, " ".join(pairs[p][0] for p in self.second)) if self.second else one

    def __str__(self) -> str:
        both = [" ".join(map(str, places)) for places in (self.first, self.second) if places]
        return " | ".join(both)


def given(kind: str, dice: random.Random) -> Given:
    """A random text: a sentence, a pair, two to six sentences in a row, or a pair of such."""
    many = dice.randint(2, 6) if kind.startswith("long") else 1
    runs = [_run(many if kind != "long pair" else max(1, many // 2), dice) for _ in range(2)]
    return Given(kind, runs[0], runs[1] if kind.endswith("pair") else ())


def _run(many: int, dice: random.Random) -> tuple[int, ...]:
    start = dice.randrange(len(sample.sentences()) - many)
    return tuple(range(start, start + many))
