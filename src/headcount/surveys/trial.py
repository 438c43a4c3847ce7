"""A trial: made-up or chosen inputs, what every head does on them, and the columns that result.

A trial runs its inputs through metrics, which count hits, chance and cells for every head and
example. The example is the unit: intervals are over examples, and a head is tested against chance
by flipping the sign of its difference example by example (Fisher 1935, section 21), with Holm's
correction over all heads of a column.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import NamedTuple, Protocol

import numpy as np
import pandas as pd
from torch import Tensor

from headcount import stats
from headcount.errors import StatsError
from headcount.models import Site, Subject, refuse_nan
from headcount.records import Column, HeadTable
from headcount.stats import DRAWS, Floats
from headcount.surveys.roles.role import MEASURES, TRIALS

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
