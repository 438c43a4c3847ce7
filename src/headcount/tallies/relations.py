"""How well each head points along dependency arcs, by relation and direction.

Voita et al., ACL 2019, section 5.2, and Clark et al., BlackBoxNLP 2019, section 4.2 and Table 1.
The three directions are told in `questions`; the numbers end as the frame `relations`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

import pandas as pd
import torch

from headcount.columns import Column
from headcount.errors import InputError, UsageError
from headcount.heads import STACKS, Head
from headcount.models.site import Site
from headcount.tallies.arcs import CLARKS_MARKS, MARKS, arcs_of
from headcount.tallies.ground import Asked, ask, hits_by_cell
from headcount.tallies.pointing import most_attended
from headcount.tallies.questions import DIRECTIONS, answers
from headcount.tallies.relation_counts import RelationCounts, Seen, Unit, counts_of
from headcount.tallies.relation_figures import RelationTest
from headcount.tallies.relation_frame import relation_frame
from headcount.tallies.tally import CONVENTIONS, Reading
from headcount.text.words import Rows, Words, word_maps
from headcount.wiring.needs import Needs
from headcount.wiring.sighting import Sighting

__all__ = ["Relations"]

#: Offsets that the baseline may choose from; Clark et al.'s program knows -3 to 2.
OFFSETS = tuple(range(-8, 9))
CLARKS_OFFSETS = tuple(range(-3, 3))

_CROSS = "queries and keys are different texts, so no dependency joins them"


@dataclass
class Relations:
    """Hits of every head and of every fixed offset on the arcs of a treebank, sentence by sentence.

    - `headcount`: a word cannot be its own answer, special tokens are none, the row of a word is
      the mean over its pieces; offsets -8 to 8.
    - `paper`: as Clark et al.'s program, with the mean over pieces that the text names; the weight
      on the word itself counts as 0, offsets are -3 to 2 and end at the sentence's edge, and the
      's behind a possessor speaks for it.
    - `code`: the same with the row of the first piece, which is what the program does.

    In a stack that looks back only, arcs whose target cannot be seen yet are left out, for heads
    and offsets alike. `all` counts every word, the root and punctuation too.
    """

    convention: str = "headcount"
    #: How rows of a word's pieces become one; by convention where None.
    rows: Rows | None = None
    directions: Sequence[str] | None = None
    offsets: Sequence[int] | None = None
    #: Whether the 's behind a possessor speaks for it; by convention where None.
    possessive: bool | None = None
    test: RelationTest = field(default_factory=RelationTest)

    needs = Needs(maps=True)
    columns: tuple[Column, ...] = ()

    def __post_init__(self) -> None:
        """Refuse settings that mean nothing."""
        if self.convention not in CONVENTIONS:
            raise UsageError(
                f"There is no convention '{self.convention}'; choose {', '.join(CONVENTIONS)}."
            )
        for direction in self.directions or ():
            self._check_direction(direction)
        self._seen: dict[Site, list[Seen]] = defaultdict(list)
        self._broken: set[Site] = set()
        self._crossed = False
        self._last: tuple[object, dict[tuple[str, bool], Asked]] = (None, {})

    def update(self, sighting: Sighting) -> None:
        """Count one site's hits on one batch; silent where the words are not known."""
        if sighting.site.stack == "cross":
            self._crossed = True
            return
        words = sighting.queries.words
        if words is None or sighting.maps is None:
            return
        asked = self._asked(sighting, words)
        if not asked.ground.labels:
            return
        maps = word_maps(sighting.maps, words, words, rows=self._rows)
        if bool(torch.isnan(maps.sum())):
            self._broken.add(sighting.site)
        rows, columns = most_attended(maps, words.there, zero_self=self._as_clark)
        hits = hits_by_cell(asked, answers(asked.question, rows, columns))
        self._seen[sighting.site].append(Seen(asked.ground, hits))

    def merge(self, other: Self) -> None:
        """Take in the counts of another part of the corpus."""
        for site, seen in other._seen.items():
            self._seen[site].extend(seen)
        self._broken |= other._broken
        self._crossed |= other._crossed

    def compute(self) -> list[Reading]:
        """No column: see `details`. Attention that is no number is told as such."""
        return [Reading.broken("relations", site) for site in self._broken]

    def details(self) -> dict[str, pd.DataFrame]:
        """`relations`: a row for each head, relation, direction and split; none without trees."""
        return {"relations": self.frame()} if self._seen else {}

    def frame(self) -> pd.DataFrame:
        """The frame `relations`; an error where no word has a head."""
        if not self._seen:
            raise InputError(
                "No word of this text has a head and a relation, so dependency arcs cannot be "
                "scored; give a treebank with the columns HEAD and DEPREL, or parse the text first."
            )
        return relation_frame(self.counts(), self.test, root=self._as_clark)

    def counts(self) -> list[RelationCounts]:
        """The counts by sentence, one for each stack."""
        by_stack: dict[str, dict[tuple[Head, ...], list[Seen]]] = defaultdict(dict)
        for site in sorted(self._seen, key=_in_order):
            by_stack[site.stack][tuple(site.names)] = self._seen[site]
        return [counts_of(seen, self._offsets) for seen in by_stack.values()]

    @property
    def remarks(self) -> list[str]:
        """What a reader of the frame must know of it."""
        causal = sorted({site.stack for site in self._seen if site.causal})
        told = [f"cross: {_CROSS}"] if self._crossed else []
        return told + [
            f"{stack}: attention looks back only, so arcs count whose target stands before"
            for stack in causal
        ]

    @property
    def _as_clark(self) -> bool:
        return self.convention != "headcount"

    @property
    def _rows(self) -> Rows:
        return self.rows or ("first" if self.convention == "code" else "mean")

    @property
    def _offsets(self) -> tuple[int, ...]:
        if self.offsets is not None:
            return tuple(self.offsets)
        return CLARKS_OFFSETS if self._as_clark else OFFSETS

    @property
    def _directions(self) -> tuple[str, ...]:
        if self.directions is not None:
            return tuple(self.directions)
        return tuple(d for d in DIRECTIONS if self.convention != "code" or d != "head->dep")

    @property
    def _marks(self) -> frozenset[str]:
        if not (self._as_clark if self.possessive is None else self.possessive):
            return frozenset()
        return CLARKS_MARKS if self._as_clark else MARKS

    def _check_direction(self, direction: str) -> None:
        if direction not in DIRECTIONS:
            raise UsageError(
                f"There is no direction '{direction}'; choose {', '.join(DIRECTIONS)}."
            )
        if direction == "head->dep" and self.convention == "code":
            raise UsageError(
                "The direction 'head->dep' does not exist under the convention 'code': its authors "
                "published no program for it; use the convention headcount or paper."
            )

    def _asked(self, sighting: Sighting, words: Words) -> Asked:
        """The questions of a batch, made for the first site of a stack and kept for the others."""
        batch, made = self._last
        if batch is not sighting.batch:
            made = {}
            self._last = (sighting.batch, made)
        key = (sighting.site.stack, sighting.site.causal)
        if key not in made:
            made[key] = self._ask(sighting, words)
        return made[key]

    def _ask(self, sighting: Sighting, words: Words) -> Asked:
        return ask(
            arcs_of(words, self._marks),
            [Unit.of(*unit) for unit in zip(sighting.batch.index, _texts(words), strict=True)],
            self._directions,
            self._offsets,
            words=words.there.shape[1],
            causal=sighting.site.causal,
            as_clark=self._as_clark,
            device=words.there.device,
        )


def _texts(words: Words) -> list[str]:
    """The text of each row's sentence."""
    return [sentence.text if sentence else "" for sentence in words.sentences]


def _in_order(site: Site) -> tuple[int, int, int]:
    return STACKS.index(site.stack), site.layer, site.call
