"""What a separator looks at itself: broadly over its text, or at itself?

Clark et al., BlackBoxNLP 2019, section 3.2, first argument: if [SEP] gathered what its segment
says, its own row would be broad; it looks at separators instead (`separator_to_separator`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor

from headcount.errors import UsageError
from headcount.models import Site
from headcount.records import Column
from headcount.surveys.tally import (
    Reading,
    SumsTally,
    add_macro,
    add_micro,
    over_each,
    over_rows,
    read_columns,
    read_macro,
    read_micro,
)
from headcount.wiring import Needs, Sighting, of_class, uniform_entropy

# --- How sure a head is: the mean of its largest weight -----------------------------------------
# Voita et al., ACL 2019, section 4: mean over all query tokens of max_j a(i, j), with the end of
# sentence left out as no real token. [CLS] and start tokens are none either, and heads rest on
# them, so they go too by default. There is no author code, so the convention `code` does not exist.

#: What confidence can leave out: the classes of tokens, and how the column says it.
LEFT_OUT = {
    "special": (
        frozenset({"special"}),
        "special tokens ([CLS], [SEP], start and end of a text) are left out as query and as key",
    ),
    "separator": (
        frozenset({"separator"}),
        "separators and ends of sentence are left out as query and as key, [CLS] and start tokens "
        "are kept",
    ),
    "nothing": (frozenset(), "special tokens are kept"),
}

CONFIDENCE = Column(
    "confidence",
    meaning=f"Mean of the largest weight of each query; {LEFT_OUT['special'][1]}.",
    paper="Voita et al. 2019, section 4",
    range=(0, 1),
    direction="higher",
    more="surer",
    group="How focused it is",
)


@dataclass
class Confidence(SumsTally):
    """Mean largest weight over tokens.

    `drop` names the classes left out as key and as query.
    """

    drop: frozenset[str] = LEFT_OUT["special"][0]
    columns = (CONFIDENCE,)
    together = True

    @classmethod
    def without(cls, what: str) -> Confidence:
        """The tally that leaves out "special", "separator" or "nothing"; its column says so.

        >>> Confidence.without("nothing").columns[0].meaning
        'Mean of the largest weight of each query; special tokens are kept.'
        """
        if what not in LEFT_OUT:
            raise UsageError(
                f"Confidence without '{what}' does not exist; choose {', '.join(LEFT_OUT)}."
            )
        classes, words = LEFT_OUT[what]
        tally = cls(classes)
        meaning = f"Mean of the largest weight of each query; {words}."
        tally.columns = (replace(CONFIDENCE, meaning=meaning),)
        return tally

    @property
    def needs(self) -> Needs:
        """The largest weight of each row."""
        return Needs(largest=frozenset({self.drop}))

    def update(self, sighting: Sighting) -> None:
        """Add up the largest weights of the rows that count."""
        rows = sighting.queries.real
        for name in self.drop:
            rows = rows & ~of_class(sighting.queries, name)
        rows = sighting.weigh(rows)
        weight = over_rows(sighting.largest[self.drop], rows)
        add_micro(self.sums, sighting.site, "confidence", weight, rows.sum(-1))

    def compute(self) -> list[Reading]:
        """One reading a site."""
        return read_micro(
            self.sums, "confidence", "no token is left once special tokens are left out"
        )


# --- How broadly a head looks: the entropy of its rows ------------------------------------------
# Clark et al., BlackBoxNLP 2019, section 3.3. Their program smooths each row with 0.0001/n
# first and averages over documents; the default here does not smooth.

#: Clark's smoothing of a row before its logarithm.
SMOOTHING = 0.0001

ENTROPY = Column(
    "entropy",
    meaning="Mean entropy of a query's attention, averaged over sentences.",
    paper="Clark et al. 2019, section 3.3",
    unit="nats",
    range=(0, None),
    more="broader",
    group="How focused it is",
)
ENTROPY_FIRST = replace(
    ENTROPY,
    name="entropy_first",
    title="Entropy of the first row",
    meaning="Mean entropy of the first token's attention ([CLS] where there is one).",
)
ENTROPY_UNIFORM = replace(
    ENTROPY,
    name="entropy_uniform",
    title="Entropy if uniform",
    meaning="The entropy that uniform attention over all visible keys would have.",
    paper="Clark et al. 2019, figure 4",
    more="longer inputs",
)


@dataclass
class Entropy(SumsTally):
    """Entropy of all rows and of the first row, and what uniform attention would give."""

    convention: str = "headcount"
    columns = (ENTROPY, ENTROPY_FIRST, ENTROPY_UNIFORM)
    together = True

    @property
    def needs(self) -> Needs:
        """Entropies, smoothed where the authors smooth."""
        own = self.convention == "headcount"
        return Needs(entropy=own, smoothed=None if own else SMOOTHING)

    def update(self, sighting: Sighting) -> None:
        """Add each sentence's mean entropies."""
        rows, site = sighting.weigh(sighting.queries.real), sighting.site
        first = sighting.weigh(of_class(sighting.queries, "first"))
        of_all, of_first = over_each(self._entropies(sighting), rows, first)
        uniform = (self._uniform(sighting) * rows).sum(-1, dtype=torch.float64)
        totals = {
            ENTROPY.name: of_all,
            ENTROPY_FIRST.name: of_first,
            ENTROPY_UNIFORM.name: uniform[:, None].expand(-1, site.heads),
        }
        all_cells, first_cells = rows.sum(-1), first.sum(-1)
        cells = {
            ENTROPY.name: all_cells,
            ENTROPY_FIRST.name: first_cells,
            ENTROPY_UNIFORM.name: all_cells,
        }
        add_macro(self.sums, site, totals, cells)

    def compute(self) -> list[Reading]:
        """Three readings a site."""
        return read_columns(self.sums, self.columns, "there was no sentence")

    def _entropies(self, sighting: Sighting) -> Tensor:
        own = self.convention == "headcount"
        found = sighting.entropy if own else sighting.smoothed_entropy
        assert found is not None
        return found

    def _uniform(self, sighting: Sighting) -> Tensor:
        """ln of the visible keys; the authors' line is ln n for every row."""
        if self.convention == "headcount":
            return uniform_entropy(sighting.visible)
        keys = sighting.keys.real.sum(-1, keepdim=True)
        return uniform_entropy(keys.expand(-1, sighting.queries.real.shape[1])).to(torch.float64)


# --- How much a head looks at the token itself, the one before and the one after ----------------
# Clark et al., BlackBoxNLP 2019, section 3.1 and figure 2. Their program divides all three by
# the number of tokens n; by default the cells that exist are counted, n - 1 for neighbours.

_column = partial(Column, range=(0, 1), group="Where it looks")
_NEAR = "Clark et al. 2019, section 3.1"

SELF = _column("self", "Self", "Mean weight of a token on itself.", _NEAR)
PREVIOUS = _column(
    "previous", "Previous token", "Mean weight of a token on the one before it.", _NEAR
)
NEXT = _column("next", "Next token", "Mean weight of a token on the one after it.", _NEAR)

OFFSETS = {SELF.name: 0, PREVIOUS.name: -1, NEXT.name: 1}


def _cannot(site: Site, offset: int) -> str | None:
    """Why the heads of a site have no weight at an offset."""
    if site.stack == "cross":
        return "queries and keys are different texts"
    return "a causal head cannot look ahead" if site.causal and offset > 0 else None


@dataclass
class Neighbours(SumsTally):
    """Mean weight at the offsets 0, -1 and +1, averaged over sentences."""

    convention: str = "headcount"
    columns = (SELF, PREVIOUS, NEXT)
    together = True
    needs = Needs(offsets=frozenset(OFFSETS.values()))

    def update(self, sighting: Sighting) -> None:
        """Add each sentence's mean weight at each offset."""
        rows = sighting.weigh(sighting.queries.real)
        tokens = rows.sum(-1)
        whole = torch.cat([sighting.offsets[offset] for offset in OFFSETS.values()], dim=1)
        totals = over_each(whole, rows)[0].split(sighting.site.heads, dim=1)
        own = self.convention == "headcount"
        cells = {name: tokens - abs(o) if own else tokens for name, o in OFFSETS.items()}
        add_macro(self.sums, sighting.site, dict(zip(OFFSETS, totals, strict=True)), cells)

    def compute(self) -> list[Reading]:
        """Three readings a site; none where rows and columns are different texts."""
        return [reading for name in OFFSETS for reading in self._read(name)]

    def _read(self, name: str) -> list[Reading]:
        blind = {site: _cannot(site, OFFSETS[name]) for site in self.sums}
        found = [Reading.missing(name, site, why) for site, why in blind.items() if why]
        seeing = [site for site, why in blind.items() if not why]
        return found + read_macro(self.sums, name, "every sentence was a single token", seeing)


# --- How much a head looks at the first token, at separators and at punctuation -----------------
# Clark et al., BlackBoxNLP 2019, section 3.2. Their program takes two separators for granted
# (it divides by 2 and by n - 2); by default the separators that are there are counted.

_specials_column = partial(_column, paper="Clark et al. 2019, section 3.2")

FIRST = _specials_column(
    "first", "First token", "Mean mass on the first token ([CLS] or BOS where there is one)."
)
SEPARATOR = _specials_column(
    "separator", "Separator", "Mean mass on separators, or on the end of the sentence."
)
SEPARATOR_TO_SEPARATOR = _specials_column(
    "separator_to_separator", "Separator to separator", "Mean mass of a separator on separators."
)
REST_TO_SEPARATOR = _specials_column(
    "rest_to_separator", "Rest to separator", "Mean mass on separators from all other tokens."
)
PUNCTUATION = _specials_column("punctuation", "Punctuation", "Mean mass on punctuation tokens.")

_UNKNOWN = "nothing is known of the tokens of ready inputs"
_WHY = {
    FIRST.name: "there was no sentence",
    SEPARATOR.name: "the keys hold no separator or end of sentence",
    SEPARATOR_TO_SEPARATOR.name: "no separator asks and answers here",
    REST_TO_SEPARATOR.name: "the keys hold no separator or end of sentence",
    PUNCTUATION.name: "the keys hold no punctuation",
}


@dataclass
class Specials(SumsTally):
    """Mass on special tokens and punctuation, averaged over sentences."""

    convention: str = "headcount"
    columns = (FIRST, SEPARATOR, SEPARATOR_TO_SEPARATOR, REST_TO_SEPARATOR, PUNCTUATION)
    together = True

    @property
    def needs(self) -> Needs:
        """The masses; the authors' punctuation is "." and "," alone."""
        return Needs(masses=frozenset({"first", "separator", self._marks}))

    @property
    def _marks(self) -> str:
        return "punctuation" if self.convention == "headcount" else "stops"

    def update(self, sighting: Sighting) -> None:
        """Add each sentence's mean mass on each class."""
        real, masses = sighting.queries.real, sighting.masses
        separators = sighting.weigh(sighting.queries.separator & real)
        rest = sighting.weigh(real & ~sighting.queries.separator)
        real = sighting.weigh(real)
        answered = (sighting.keys.separator & sighting.keys.real).any(-1)
        separator = (SEPARATOR, SEPARATOR_TO_SEPARATOR, REST_TO_SEPARATOR)
        rows = dict(
            zip((column.name for column in separator), (real, separators, rest), strict=True)
        )
        first, marked = over_each(torch.cat([masses["first"], masses[self._marks]], 1), real)[
            0
        ].split(sighting.site.heads, dim=1)
        totals = {FIRST.name: first, PUNCTUATION.name: marked}
        totals |= dict(zip(rows, over_each(masses["separator"], *rows.values()), strict=True))
        tokens = real.sum(-1)
        cells = {FIRST.name: tokens, PUNCTUATION.name: tokens}
        for column in separator:
            cells[column.name] = self._cells(column, rows[column.name], real) * answered
        add_macro(self.sums, sighting.site, totals, cells)
        marks = (of_class(sighting.keys, self._marks) & sighting.keys.real).sum()
        known = marks.new_full((), int(sighting.keys.annotated))
        self.sums.add(sighting.site, {}, shared={"marks": marks, "known": known})

    def compute(self) -> list[Reading]:
        """Five readings a site."""
        return [reading for column in self.columns for reading in self._read(column.name)]

    def _read(self, name: str) -> list[Reading]:
        def why(site: Site) -> str:
            return _WHY[name] if self.sums.of(site, "known").any() else _UNKNOWN

        sites = list(self.sums)
        unmarked = [site for site in sites if not self.sums.of(site, "marks").any()]
        silent = unmarked if name == PUNCTUATION.name else []
        found = [Reading.missing(name, site, why(site)) for site in silent]
        return found + read_macro(self.sums, name, why, [s for s in sites if s not in silent])

    def _cells(self, column: Column, rows: Tensor, real: Tensor) -> Tensor:
        """How many rows the mean is over: those that exist, or what the program assumes."""
        counted = rows.sum(-1)
        if self.convention == "headcount" or column is SEPARATOR:
            return counted
        if column is SEPARATOR_TO_SEPARATOR:
            return torch.where(counted > 0, 2, 0)
        return (real.sum(-1) - 2).clamp_min(0)
