"""How often each head points from a mention to its antecedent.

Clark et al., BlackBoxNLP 2019, section 4.3 and Table 2: the share of coreferent mentions whose head
word attends most to the head word of one of the mention's antecedents, for all mentions and for
pronouns, proper and nominal mentions. There is no author code.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Self, get_args

import pandas as pd
import torch

from headcount import stats
from headcount.columns import Column
from headcount.errors import UsageError
from headcount.heads import STACKS, Head
from headcount.models.site import Site
from headcount.tallies.antecedents import BASELINES
from headcount.tallies.choice_frame import ChoiceTest, choice_frame
from headcount.tallies.closed_up import closed_up
from headcount.tallies.mention_questions import (
    DIRECTION,
    Candidates,
    MentionQuestions,
    mention_questions,
    units_of,
)
from headcount.tallies.mentions import KINDS
from headcount.tallies.relation_counts import ALL, RelationCounts, Seen, counts_of
from headcount.tallies.tally import Reading
from headcount.text.words import Rows, Words, word_maps
from headcount.wiring.needs import Needs
from headcount.wiring.sighting import Sighting

__all__ = ["COREFERENCE", "Coreference"]

COREFERENCE = Column(
    "coreference",
    meaning="Share of coreferent mentions whose head word attends most to an antecedent's.",
    paper="Clark et al. 2019, section 4.3",
    range=(0, 1),
    direction="higher",
    group="What it tracks",
)

_CROSS = "queries and keys are different texts"
_NONE = "no mention has an antecedent in the same text"


@dataclass
class Coreference:
    """Hits of every head, and of rules that know no model, on coreferent mentions.

    A word cannot be its own antecedent, special tokens are none, and by default only words before
    the mention may be chosen (`candidates`: "preceding", "mentions" for head words of mentions
    before, "all" for every other word; the paper does not say, and `convention="paper"` reads it
    as "all"). Heads and rules see what is in the same row: cut texts to 128 tokens as the paper
    does, or give the model its full length. Counts are kept text by text.
    """

    convention: str = "headcount"
    candidates: Candidates | None = None
    #: How rows of a word's pieces become one.
    rows: Rows = "mean"
    test: ChoiceTest = field(default_factory=ChoiceTest)

    needs = Needs(maps=True)
    columns = (COREFERENCE,)

    def __post_init__(self) -> None:
        """Refuse settings that mean nothing."""
        if self.convention not in ("headcount", "paper"):
            raise UsageError(
                f"Coreference has no convention '{self.convention}': its authors published no "
                "code; use headcount or paper."
            )
        if self.candidates not in (None, *get_args(Candidates)):
            raise UsageError(
                f"candidates is '{self.candidates}'; choose {', '.join(get_args(Candidates))}."
            )
        self._seen: dict[Site, list[Seen]] = defaultdict(list)
        self._broken: set[Site] = set()
        self._silent: dict[Site, str] = {}
        self._last: tuple[object, dict[tuple[str, bool], MentionQuestions]] = (None, {})

    def update(self, sighting: Sighting) -> None:
        """Count one site's hits on one batch; silent where no mention is known."""
        words = sighting.queries.words
        if words is None or sighting.maps is None or sighting.site.stack == "cross":
            self._silent[sighting.site] = _CROSS if sighting.site.stack == "cross" else _NONE
            return
        questions = self._questions(sighting, words)
        if not questions.ground.labels:
            self._silent[sighting.site] = _NONE
            return
        here = closed_up(words)
        maps = word_maps(sighting.maps, here, here, rows=self.rows)
        if bool(torch.isnan(maps).any()):
            self._broken.add(sighting.site)
        self._seen[sighting.site].append(Seen(questions.ground, {DIRECTION: questions.hits(maps)}))

    def merge(self, other: Self) -> None:
        """Take in the counts of another part of the corpus."""
        for site, seen in other._seen.items():
            self._seen[site].extend(seen)
        self._broken |= other._broken
        self._silent = other._silent | self._silent

    def compute(self) -> list[Reading]:
        """Accuracy over all mentions, with an interval over texts."""
        told = [self._read(site, seen) for site, seen in self._seen.items()]
        return told + [
            Reading.missing(COREFERENCE.name, site, why)
            for site, why in self._silent.items()
            if site not in self._seen
        ]

    def details(self) -> dict[str, pd.DataFrame]:
        """`coreference`: a row for each head, kind of mention, baseline and split."""
        return {"coreference": self.frame()} if self._seen else {}

    def frame(self) -> pd.DataFrame:
        """The frame `coreference`; see `choice_frame`."""
        return choice_frame(
            self.counts(), self.test, direction=DIRECTION, kinds=(ALL, *KINDS),
            baselines=tuple(BASELINES),
        )  # fmt: skip

    def counts(self) -> list[RelationCounts]:
        """The counts by text, one for each stack; `offsets` are the baselines, in their order."""
        by_stack: dict[str, dict[tuple[Head, ...], list[Seen]]] = defaultdict(dict)
        for site in sorted(self._seen, key=lambda s: (STACKS.index(s.stack), s.layer, s.call)):
            by_stack[site.stack][tuple(site.names)] = self._seen[site]
        return [counts_of(seen, range(len(BASELINES))) for seen in by_stack.values()]

    def _read(self, site: Site, seen: list[Seen]) -> Reading:
        if site in self._broken:
            return Reading.broken(COREFERENCE.name, site)
        found = counts_of({tuple(site.names): seen}, ()).of(ALL, DIRECTION)
        n, x = found.arcs, found.hits
        sums = (x.sum(0), n.sum(), (x**2).sum(0), n @ x, n @ n, len(n))
        return Reading(COREFERENCE.name, site, *stats.ratio_interval(*sums, bounds=(0, 1)))

    def _questions(self, sighting: Sighting, words: Words) -> MentionQuestions:
        """The questions of a batch, made for the first site of a stack and kept for the others."""
        batch, made = self._last
        if batch is not sighting.batch:
            made = {}
            self._last = (sighting.batch, made)
        key = (sighting.site.stack, sighting.site.causal)
        if key not in made:
            units = units_of(words, sighting.batch.index)
            made[key] = mention_questions(words, units, self._candidates, causal=key[1])
        return made[key]

    @property
    def _candidates(self) -> Candidates:
        return self.candidates or ("all" if self.convention == "paper" else "preceding")
