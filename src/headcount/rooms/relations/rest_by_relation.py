"""Do heads look at a separator, or the first token, when their relation is absent?

Clark et al., BlackBoxNLP 2019, section 3.2, second argument: a head that follows a relation looks
at [SEP] where the relation is not there. So: the mass on the resting place from words that bear a
relation, against that from the other words of the same sentence. Models differ in where they rest,
so the first token ([CLS], or whatever a decoder starts with) is measured as well as separators.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple, Self

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from headcount.records import Column
from headcount.rooms.relations.relations import arcs_of
from headcount.rooms.words import Compared, PairedMeans, chosen_texts, resample_units, universal
from headcount.surveys import BatchCache, Reading, TallyPlan
from headcount.text import Words
from headcount.wiring import Needs, Sighting, of_class

#: Where a head may rest.
RESTS = ("separator", "first")

_DIRECTIONS = ("dep->head", "head->dep")


class _Bearers(NamedTuple):
    """Which words bear which relation in a batch."""

    #: Relations with a direction, and bool ``[batch, item, word]``.
    items: list[str]
    words: Tensor
    #: How much each token counts for its word, ``[batch, word, token]``.
    shares: Tensor
    chosen: Tensor
    #: The words that count, for each resting place: bool ``[batch, word]``.
    counts: dict[str, Tensor]


@dataclass
class RestByRelation:
    """Mean mass on a resting place from words with a relation and from the others, by sentence.

    `dep->head` reads the dependents of a relation, `head->dep` the words that have such a
    dependent. A word next to the resting place does not count: a head that looks one token ahead
    would seem to rest there. The finer table has `value` (bearers), `baseline` (other words) and
    p of "no less".
    """

    #: Relations with fewer sentences are shown and not tested.
    support: int = 30
    seed: int = 0
    means: PairedMeans = field(default_factory=PairedMeans, init=False, repr=False, compare=False)
    _batches: BatchCache[_Bearers] = field(
        default_factory=BatchCache, init=False, repr=False, compare=False
    )

    needs = Needs(masses=frozenset(RESTS))
    kept: ClassVar[tuple[type, ...]] = (PairedMeans,)
    columns: tuple[Column, ...] = ()
    together: ClassVar[bool] = True

    def update(self, sighting: Sighting) -> None:
        """Add each sentence's masses; nothing without trees."""
        site, words = sighting.site, sighting.queries.words
        if words is None:
            return
        bearers = self._batches.get(
            sighting.batch, site.stack, lambda: self._bearers(sighting, words)
        )
        for rest in RESTS if bearers.items else ():
            mass = sighting.masses[rest].masked_fill(~words.pieces.any(1)[:, None], 0)
            by_word = mass @ bearers.shares.transpose(1, 2)
            found = _compared(by_word, bearers.words, bearers.counts[rest])
            names = [f"{rest} {item}" for item in bearers.items]
            self.means.add(site, names, found, bearers.chosen)

    def merge(self, other: Self) -> None:
        """Add the other's sums."""
        self.means.merge(other.means)

    def compute(self) -> list[Reading]:
        """No column: see `details`; NaN where the attention is not a number."""
        broken = [site for site in self.means if self.means.broken(site)]
        return [Reading.broken("rest_by_relation", site) for site in broken]

    def details(self) -> dict[str, pd.DataFrame]:
        """`rest_by_relation`: a row for each head, place, relation, direction and split."""
        if not any(self.means.items(site) for site in self.means):
            return {}
        frame = self.means.frame("relation", side="less", support=self.support)
        parts = frame["relation"].str.split(" ", n=2, expand=True)
        frame = frame.assign(rest=parts[0], relation=parts[1], direction=parts[2])
        return {"rest_by_relation": frame}

    def _bearers(self, sighting: Sighting, words: Words) -> _Bearers:
        arcs = arcs_of(words, frozenset())
        labels = [universal(label) for label in arcs.labels]
        items = [f"{label} {way}" for label in sorted(set(labels)) for way in _DIRECTIONS]
        number = {item: place for place, item in enumerate(items)}
        found = torch.zeros(len(words), len(items), words.there.shape[1], dtype=torch.bool)
        for way, ends in zip(_DIRECTIONS, (arcs.dependent, arcs.head), strict=True):
            numbers = np.array([number[f"{label} {way}"] for label in labels], dtype=int)
            there = ends >= 0
            found[arcs.row[there], numbers[there], ends[there]] = True
        pieces, device = words.pieces.float(), words.there.device
        return _Bearers(
            items,
            found.to(device),
            pieces / pieces.sum(-1, keepdim=True).clamp_min(1),
            chosen_texts(resample_units(words, sighting.batch.index), device, self.seed),
            {rest: _counting(sighting, words, rest) for rest in RESTS},
        )


def _counting(sighting: Sighting, words: Words, rest: str) -> Tensor:
    """Words of texts that have the resting place, but for those next to it."""
    places = of_class(sighting.keys, rest)
    counts = words.there & places.any(-1, keepdim=True)
    if sighting.site.stack == "cross":
        return counts
    near = places.clone()
    near[:, 1:] |= places[:, :-1]
    near[:, :-1] |= places[:, 1:]
    return counts & ~(words.pieces & near[:, None]).any(-1)


def _compared(mass: Tensor, bearers: Tensor, counts: Tensor) -> Compared:
    """Mean mass of bearers and of the other words, ``[batch, head, item]``."""
    bear, rest = bearers & counts[:, None], ~bearers & counts[:, None]
    value, baseline = (
        mass @ part.to(mass.dtype).transpose(1, 2) / part.sum(-1).clamp_min(1)[:, None]
        for part in (bear, rest)
    )
    both = bear.any(-1) & rest.any(-1)
    return Compared(value, both, baseline, both)


#: It among the tallies of the registry.
PLAN = TallyPlan(lambda subject, corpus, options: RestByRelation(), "treebank")
