"""The marks of a trial become columns of the table, with intervals, chance and p values.

The example is the unit: intervals are over examples, and a head is tested against chance by
flipping the sign of its difference example by example (Fisher 1935, section 21), with Holm's
correction over all heads that were asked the same question.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
import pandas as pd

from headcount import stats
from headcount.columns import Column
from headcount.errors import StatsError
from headcount.models.anatomy import Anatomy
from headcount.models.finite import refuse_nan
from headcount.stats.resample import DRAWS
from headcount.stats.results import Floats
from headcount.subject import Subject
from headcount.table import HeadTable
from headcount.trials.marks import Counted
from headcount.trials.question import Finding, Findings, Measure

__all__ = ["ANSWERS", "MEASURES", "answer_frame", "answers", "interval_of", "measure_of"]

#: The name of the finer table: one row a head and column, with chance and p values.
ANSWERS = "trials"
#: The name of the table of what the whole model does in each trial.
MEASURES = "trial_models"

Bounds = tuple[float, float] | None

#: The level for which there are always draws enough, however many heads there are.
LEVEL = 0.05


@dataclass(frozen=True)
class Answer:
    """One column's figures for all heads of the anatomy, NaN where a head was not asked."""

    value: Floats
    low: Floats
    high: Floats
    baseline: Floats
    p: Floats
    p_adjusted: Floats
    n: Floats
    examples: Floats
    note: str = ""


def answers(subject: Subject, found: Sequence[Findings]) -> HeadTable:
    """The table of all findings; `details` has their tests and what the model itself does."""
    findings = [finding for part in found for finding in part.columns]
    told = {finding.column.name: _answer(subject, finding) for finding in findings}
    table = HeadTable.of(
        subject.anatomy.heads,
        {name: answer.value for name, answer in told.items()},
        [finding.column for finding in findings],
        low={name: answer.low for name, answer in told.items()},
        high={name: answer.high for name, answer in told.items()},
        notes=_notes(subject.anatomy, findings, told),
    )
    frames = [answer_frame(subject.anatomy, one, told[one.column.name]) for one in findings]
    table.details = {name: frame for part in found for name, frame in part.details.items()}
    table.details[ANSWERS] = pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()
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


def answer_frame(anatomy: Anatomy, finding: Finding, answer: Answer) -> pd.DataFrame:
    """The answer's rows of the finer table; heads that were not asked have none."""
    asked = np.flatnonzero(~np.isnan(answer.value))
    heads = [anatomy.heads[row] for row in asked]
    figures = {name: getattr(answer, name)[asked] for name in _FIGURES}
    return pd.DataFrame(
        {
            "stack": [head.stack for head in heads],
            "layer": [head.layer for head in heads],
            "head": [head.index for head in heads],
            "column": finding.column.name,
            **figures,
            "against": finding.baseline,
        }
    ).astype(dict.fromkeys(("layer", "head", "n", "examples"), "int64"))


_FIGURES = ("value", "low", "high", "baseline", "p", "p_adjusted", "n", "examples")


def _answer(subject: Subject, finding: Finding) -> Answer:
    """Figures of all heads together, since they are tested together."""
    counted = _together(subject, finding)
    if not len(counted.hits):
        return _no_answer(len(subject.heads))
    value, low, high = interval_of(counted, _bounds(finding.column))
    p, p_adjusted, note = _test(counted)
    with np.errstate(invalid="ignore", divide="ignore"):
        baseline = counted.chance.sum(axis=0) / counted.cells.sum(axis=0)
    examples = (counted.cells > 0).sum(axis=0).astype(np.float64)
    cells = counted.cells.sum(axis=0)
    return Answer(value, low, high, baseline, p, p_adjusted, cells, examples, note)


def _no_answer(heads: int) -> Answer:
    """What is said of heads when there was no example."""
    nothing = np.full(heads, np.nan)
    return Answer(nothing, nothing, nothing, nothing, nothing, nothing, nothing, nothing)


def _together(subject: Subject, finding: Finding) -> Counted:
    """The marks of all heads, ``[example, head]``; no cells where a head was not asked."""
    marks, anatomy = finding.marks, subject.anatomy
    whole = np.zeros((3, len(marks.examples), len(anatomy.heads)))
    for site in marks:
        part = marks.of(site)
        if np.isnan(part.hits).any():
            refuse_nan(subject, f"{site.stack}.{site.layer}")
        whole[:, :, anatomy.spans[site]] = np.stack(part)
    return Counted(*whole)


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
        return nothing, nothing.copy(), f"no test: {str(error).rstrip('.')}"
    return found.p, found.p_adjusted, ""


def _bounds(column: Column) -> Bounds:
    """What the column can reach: few examples give intervals that know no limits."""
    low, high = column.range
    return (-math.inf if low is None else low, math.inf if high is None else high)


def _notes(
    anatomy: Anatomy, findings: Sequence[Finding], told: dict[str, Answer]
) -> dict[str, str]:
    """Why heads of a stack have no value, and why a column has no test."""
    notes = {}
    for finding in findings:
        answer = told[finding.column.name]
        silent = _nothing_seen(anatomy, finding, answer) | finding.silent
        by_stack = [f"{stack}: {silent[stack]}" for stack in anatomy.stacks if stack in silent]
        said = "; ".join([*filter(None, [answer.note]), *by_stack])
        if said:
            notes[finding.column.name] = said
    return notes


def _nothing_seen(anatomy: Anatomy, finding: Finding, answer: Answer) -> dict[str, str]:
    """Stacks that were asked, of which no example had a case."""
    spans = {site: anatomy.spans[site] for site in finding.marks}
    empty = [site.stack for site, span in spans.items() if np.isnan(answer.value[span]).all()]
    return dict.fromkeys(empty, "no example has a case of it")


def measure_of(
    trial: str, name: str, hits: Floats, cells: Floats, bounds: Bounds = None
) -> Measure:
    """A figure of the model over examples, ``[example]``, with its interval."""
    marks = Counted(hits[:, None], np.zeros_like(hits)[:, None], cells[:, None])
    value, low, high = (float(part[0]) for part in interval_of(marks, bounds))
    return Measure(trial, name, value, low, high, int(cells.sum()))
