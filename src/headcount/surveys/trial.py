"""A trial: made-up or chosen inputs, what every head does on them, and the columns that result.

A trial runs its inputs through metrics, which count hits, chance and cells for every head and
example. The example is the unit: intervals are over examples, and a head is tested against chance
by flipping the sign of its difference example by example (Fisher 1935, section 21), with Holm's
correction over all heads of a column.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import reduce
from itertools import takewhile
from operator import or_
from typing import NamedTuple, Protocol

import numpy as np
import pandas as pd
from torch import Tensor

from headcount import stats, tasks
from headcount.errors import InputError, StatsError
from headcount.models import Site, Subject, eval_mode, refuse_nan
from headcount.records import Column, HeadTable
from headcount.stats import DRAWS, Floats
from headcount.surveys.roles.role import MEASURES, TRIALS
from headcount.text import Batch, EncodeReport, RowTokenizer, intake_of
from headcount.wiring import Needs, Sighting, tap

# --- What every head got on every example of a trial --------------------------------------------
# Examples are kept apart, since the statistics draw them again: a trial has tens of them, seldom
# thousands, and a head takes two numbers of each.


class Counted(NamedTuple):
    """The counts of one site, all ``[example, head]``: hits among cells, and chance's hits."""

    hits: Floats
    chance: Floats
    cells: Floats


class TrialCounts:
    """Hits, chance and cells by site and example; the order of batches never shows.

    >>> import torch
    >>> site = Site("dec", 0, heads=2, kv_heads=2, head_dim=4, module="a", causal=True)
    >>> counts = TrialCounts()
    >>> counts.add(site, [1], torch.tensor([[3.0, 0.0]]), torch.ones(1), torch.full((1,), 4))
    >>> counts.add(site, [0], torch.tensor([[1.0, 4.0]]), torch.ones(1), torch.full((1,), 4))
    >>> counts.of(site).hits.tolist()
    [[1.0, 4.0], [3.0, 0.0]]
    """

    def __init__(self) -> None:
        self._rows: dict[Site, dict[int, Floats]] = defaultdict(dict)

    def __iter__(self) -> Iterator[Site]:
        return iter(self._rows)

    def add(
        self, site: Site, index: Sequence[int], hits: Tensor, chance: Tensor, cells: Tensor
    ) -> None:
        """Take in a batch: hits ``[batch, head]``; chance and cells so too, or ``[batch]``."""
        wide = [v.reshape(len(hits), -1).expand_as(hits) for v in (chance, cells)]
        parts = [part.detach().double().cpu().numpy() for part in (hits, *wide)]
        for row, example in enumerate(index):
            self._rows[site][example] = np.stack([part[row] for part in parts])

    def of(self, site: Site) -> Counted:
        """The site's counts in the order of the examples."""
        rows = self._rows[site]
        return Counted(*np.stack([rows[example] for example in sorted(rows)], axis=1))

    @property
    def examples(self) -> list[int]:
        """The numbers of the examples seen, in order."""
        return sorted({example for rows in self._rows.values() for example in rows})


# --- Trials of the registry -----------------------------------------------------------------------


@dataclass(frozen=True)
class TrialTexts:
    """What a trial can be made of."""

    texts: list[str]
    #: Sources with their translations, where there are any.
    pairs: list[tuple[str, str]]
    seed: int = 0
    convention: str = "headcount"
    #: Whether the texts fit what the model reads: pairs for a translator.
    fit: bool = True


@dataclass(frozen=True)
class TrialPlan:
    """How a survey comes by a trial of the registry; a class alone is made without arguments."""

    make: Callable[[TrialTexts], Trial | None]
    #: It is run where a role reads this.
    read_by: str = TRIALS


# --- Trials and their metrics --------------------------------------------------------------------


@dataclass
class Finding:
    """What a trial found for one column: counts of the heads, and why others have none."""

    column: Column
    #: What the baseline of the counts is, in words: "uniform attention".
    baseline: str
    counts: TrialCounts = field(default_factory=TrialCounts)
    #: Stack to the reason why its heads are not measured.
    skipped: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Measure:
    """A figure of the whole model in a trial: whether it can do the thing at all."""

    trial: str
    name: str
    value: float
    low: float
    high: float
    n: int


@dataclass
class Findings:
    """Everything that one trial found."""

    columns: list[Finding]
    measures: list[Measure] = field(default_factory=list)
    details: dict[str, pd.DataFrame] = field(default_factory=dict)


class TrialMetric(Protocol):
    """Reads sightings and counts hits."""

    @property
    def needs(self) -> Needs:
        """What it needs of each map."""

    def update(self, sighting: Sighting) -> None:
        """Count the hits of one site's heads on one batch."""


class Trial(Protocol):
    """A dataclass whose fields are its sizes, called on a subject."""

    @property
    def name(self) -> str:
        """The word for it everywhere."""

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns that it fills."""

    def unfit(self, subject: Subject) -> str | None:
        """Why the trial means nothing for a subject; None where it can be run."""

    def __call__(self, subject: Subject) -> Findings:
        """Run it."""


def run_metrics(
    subject: Subject,
    batches: Iterable[Batch],
    metrics: Sequence[TrialMetric],
    stacks: Collection[str] | None = None,
) -> None:
    """Run every batch and update every metric with every site of it."""
    needs = reduce(or_, (metric.needs for metric in metrics), Needs())

    def receive(sighting: Sighting) -> None:
        for metric in metrics:
            metric.update(sighting)

    with tap(subject, needs, stacks=stacks) as watch:
        for batch in batches:
            watch(batch, receive=receive)


# --- Counts become columns of the table ---------------------------------------------------------

Bounds = tuple[float, float] | None

#: The level for which there are always draws enough, however many heads there are.
LEVEL = 0.05


def trial_table(subject: Subject, found: Sequence[Findings]) -> HeadTable:
    """The table of all findings; `details` has their tests and what the model itself does."""
    findings = [finding for part in found for finding in part.columns]
    anatomy, notes, figures = subject.anatomy, {}, {}
    for finding in findings:
        name = finding.column.name
        figures[name], untested = _figures(subject, finding)
        values = figures[name]["value"].to_numpy()
        skipped = {
            site.stack: "no example has a case of it"
            for site in finding.counts
            if np.isnan(values[anatomy.spans[site]]).all()
        } | finding.skipped
        by_stack = [f"{stack}: {skipped[stack]}" for stack in anatomy.stacks if stack in skipped]
        if untested or by_stack:
            notes[name] = "; ".join([*filter(None, [untested]), *by_stack])
    table = HeadTable.of(
        anatomy.heads,
        {name: frame["value"].to_numpy() for name, frame in figures.items()},
        [finding.column for finding in findings],
        low={name: frame["low"].to_numpy() for name, frame in figures.items()},
        high={name: frame["high"].to_numpy() for name, frame in figures.items()},
        notes=notes,
    )
    table.details = {name: frame for part in found for name, frame in part.details.items()}
    whole = {"n": "int64", "examples": "int64"}
    rows = [frame[frame["value"].notna()].astype(whole) for frame in figures.values()]
    table.details[TRIALS] = pd.concat(rows, ignore_index=True) if rows else pd.DataFrame()
    measures = [asdict(measure) for part in found for measure in part.measures]
    if measures:
        table.details[MEASURES] = pd.DataFrame(measures)
    return table


def interval_of(counted: Counted, bounds: Bounds = None) -> stats.Interval:
    """Hits in cells with a 95% interval over examples, for each head."""
    x, n = counted.hits, counted.cells
    total, cells, xx, xn, nn, seen = (
        part.sum(axis=0) for part in (x, n, x * x, x * n, n * n, n > 0)
    )
    return stats.ratio_interval(total, cells, xx, xn, nn, seen, bounds=bounds)


def measure_of(
    trial: str, name: str, hits: Floats, cells: Floats, bounds: Bounds = None
) -> Measure:
    """A figure of the model over examples, ``[example]``, with its interval."""
    counted = Counted(hits[:, None], np.zeros_like(hits)[:, None], cells[:, None])
    value, low, high = (float(part[0]) for part in interval_of(counted, bounds))
    return Measure(trial, name, value, low, high, int(cells.sum()))


def _figures(subject: Subject, finding: Finding) -> tuple[pd.DataFrame, str]:
    """A row a head, NaN where it was not measured, and why there is no test."""
    heads = subject.anatomy.heads
    # The counts of all heads, ``[example, head]``; no cells where a head was not measured.
    counts, anatomy = finding.counts, subject.anatomy
    whole = np.zeros((3, len(counts.examples), len(anatomy.heads)))
    for site in counts:
        part = counts.of(site)
        if np.isnan(part.hits).any():
            refuse_nan(subject, f"{site.stack}.{site.layer}")
        whole[:, :, anatomy.spans[site]] = np.stack(part)
    counted, why = Counted(*whole), ""
    figures = dict.fromkeys(
        ("value", "low", "high", "baseline", "p", "p_adjusted", "n", "examples"),
        np.full(len(heads), np.nan),
    )
    if len(counted.hits):
        low, high = finding.column.range  # few examples give intervals that know no limits
        bounds = (-math.inf if low is None else low, math.inf if high is None else high)
        cells = counted.cells.sum(axis=0)
        with np.errstate(invalid="ignore", divide="ignore"):
            figures["baseline"] = counted.chance.sum(axis=0) / cells
        figures |= dict(zip(("value", "low", "high"), interval_of(counted, bounds), strict=True))
        figures["p"], figures["p_adjusted"], why = _test(counted)
        figures["n"], figures["examples"] = cells, (counted.cells > 0).sum(axis=0)
    about = pd.DataFrame(heads, columns=["stack", "layer", "head"])
    return about.assign(column=finding.column.name, **figures, against=finding.baseline), why


def _test(counted: Counted) -> tuple[Floats, Floats, str]:
    """p and corrected p of hits above chance, or NaN and the reason."""
    ours = np.stack([counted.hits, counted.cells], axis=-1)
    theirs = np.stack([counted.chance, counted.cells], axis=-1)
    tests = int((counted.cells.sum(axis=0) > 0).sum())
    draws = max(DRAWS, math.ceil(tests / LEVEL))
    try:
        found = stats.sign_flip_scores(ours, theirs, alternative="greater", draws=draws)
    except StatsError as error:
        nothing = np.full(counted.hits.shape[1], np.nan)
        return nothing, nothing, f"no test: {str(error).rstrip('.')}"
    return found.p, found.p_adjusted, ""


# --- Where a sequence and its repeat stand in a row of tokens -----------------------------------


@dataclass(frozen=True)
class Layout:
    """A sequence of `length` tokens, repeated once, behind the special tokens of each side.

    >>> layout = Layout(3, {"target": 1})
    >>> layout.first("target"), layout.second("target")
    (slice(1, 4, None), slice(4, 7, None))
    """

    length: int
    #: How many tokens stand in front of it, by side ("source", "target").
    before: Mapping[str, int]

    def first(self, side: str) -> slice:
        """The places of the sequence."""
        start = self.before[side]
        return slice(start, start + self.length)

    def second(self, side: str) -> slice:
        """The places of the repeat."""
        start = self.before[side] + self.length
        return slice(start, start + self.length)

    def both(self, side: str) -> slice:
        """All places."""
        return slice(self.before[side], self.before[side] + 2 * self.length)


# --- The special tokens that a tokenizer puts around a text -------------------------------------


@dataclass(frozen=True)
class Wrapping:
    """Ids in front of a text and behind it.

    >>> Wrapping((1,), (2,)).around([7, 8])
    [1, 7, 8, 2]
    """

    before: tuple[int, ...] = ()
    after: tuple[int, ...] = ()

    def around(self, ids: list[int]) -> list[int]:
        """A text's ids between them."""
        return [*self.before, *ids, *self.after]


def wrapping_of(subject: Subject, *, target: bool = False) -> Wrapping:
    """How the subject's tokenizer wraps a text; nothing where there is no tokenizer."""
    if subject.tokenizer is None:
        return Wrapping()
    row = RowTokenizer(subject.tokenizer, EncodeReport()).rows(["a"], target=target)[0]
    before = len(list(takewhile(bool, row.special)))
    after = len(list(takewhile(bool, reversed(row.special)))) if before < len(row.ids) else 0
    return Wrapping(tuple(row.ids[:before]), tuple(row.ids[len(row.ids) - after :]))


# --- Texts as one long run of token ids, to cut windows and haystacks from ----------------------


class Stream:
    """Token ids that follow one another; a cut may go round the end, once.

    >>> Stream([1, 2, 3, 4]).cut(3, 3)
    [4, 1, 2]
    """

    def __init__(self, ids: Sequence[int]) -> None:
        self.ids = list(ids)

    def __len__(self) -> int:
        return len(self.ids)

    def cut(self, start: int, length: int) -> list[int]:
        """N ids from a place on."""
        if length > len(self):
            raise InputError(
                f"The text has {len(self):,} tokens and the trial cuts {length:,} in one piece; "
                "give more text, or a smaller length."
            )
        around = self.ids[start:] + self.ids[:start]
        return around[:length]

    def windows(self, length: int, most: int) -> list[list[int]]:
        """Pieces of one length that follow one another without overlap, the first so many."""
        whole = range(0, len(self) - length + 1, length)
        if not whole:
            raise InputError(
                f"The text has {len(self):,} tokens and the trial reads windows of {length}; give "
                "more text, or a smaller length."
            )
        return [self.ids[start : start + length] for start in whole][:most]


def stream_of(subject: Subject, texts: Sequence[str]) -> Stream:
    """Texts joined by a space, as the tokenizer writes them, without special tokens."""
    assert subject.tokenizer is not None  # trials on text are unfit without one
    spaced = [texts[0], *(f" {text}" for text in texts[1:])] if texts else []
    rows = RowTokenizer(subject.tokenizer, EncodeReport()).rows(spaced) if spaced else []
    return Stream(
        [
            number
            for row in rows
            for number, special in zip(row.ids, row.special, strict=True)
            if not special
        ]
    )


# --- What the model predicts --------------------------------------------------------------------


def predicts_tokens(subject: Subject) -> bool:
    """Whether the model has a layer from hidden states to the vocabulary."""
    return subject.inner.get_output_embeddings() is not None


def token_logits(subject: Subject, batch: Batch, last: int = 0) -> Tensor:
    """Logits ``[row, token, word]`` of a batch, dropout off, with gradients where they are wanted.

    With `last`, those of the last so many tokens are enough; count from the end.
    """
    options = {"logits_to_keep": last} if intake_of(subject.model).accepts("logits_to_keep") else {}
    with eval_mode(subject.model):
        logits: Tensor = tasks.forward(subject, batch, **options).logits
    return logits
