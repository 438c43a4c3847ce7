"""Roles that read a trial: induction, retrieval, duplicate and previous token, alignment.

Olsson et al. 2022; Wu et al. 2024; Wang et al. 2023; Elhage et al. 2021; Garg et al. 2019, Chen et
al. 2020.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import pandas as pd

from headcount.records import HeadTable
from headcount.surveys import roles
from headcount.surveys.roles import (
    TRIALS,
    Verdict,
    best_of,
    row_verdicts,
    value_text,
)

INDUCTION = roles.kind_beside(__file__, "induction")


class TrialRole:
    """Heads whose value in a trial reaches `least`, above chance at the test's `level`.

    It is reached where the lower end of the interval reaches it.
    """

    name: ClassVar[str]
    column: ClassVar[str]
    #: What the trial measures, in words, and the label of such a head.
    measured: ClassVar[str]
    usual_label: ClassVar[str]
    least: float
    #: The level of the test, Holm over all heads.
    level: float

    def judge(self, table: HeadTable) -> list[Verdict]:
        """The heads that pass, the highest value first."""
        rows = passing_rows(table, self.column, least=partial(self.line, table), level=self.level)
        return row_verdicts(
            rows, self.name, partial(self.label, table), partial(self.evidence, table)
        )

    def chance(self, twin: HeadTable, verdict: Verdict) -> float:
        """The value of the twin's best head."""
        return best_of(twin, self.column, verdict.head.stack)

    @property
    def asks(self) -> tuple[tuple[str, str, float], ...]:
        """What it asks a share of, in words, the column, and the least."""
        return ((self.measured, self.column, self.least),)

    def line(self, table: HeadTable, rows: pd.DataFrame) -> pd.Series:
        """What the lower end of each head's interval must reach."""
        return pd.Series(self.least, rows.index)

    def label(self, table: HeadTable, row: pd.Series) -> str:
        """Which of its kind a head is."""
        return self.usual_label

    def evidence(self, table: HeadTable, row: pd.Series) -> str:
        """The figures in words."""
        return plain_words(self.measured, row)


def passing_rows(
    table: HeadTable,
    column: str,
    *,
    least: float | Callable[[pd.DataFrame], pd.Series],
    level: float,
    margin: float = 0.0,
) -> pd.DataFrame:
    """The rows that reach the line (95%), lie so far above the baseline and are no chance."""
    rows = table.details[TRIALS]
    rows = rows[rows["column"] == column]
    above = rows["low"] - rows["baseline"] >= margin
    line = least(rows) if callable(least) else least
    held = rows[(rows["low"] >= line) & above & (rows["p_adjusted"] <= level)]
    return held.sort_values("value", ascending=False, kind="stable")


def plain_words(what: str, row: pd.Series) -> str:
    """What was measured, its value with interval, and the baseline.

    >>> row = pd.Series({"value": 0.86, "low": 0.79, "high": 0.92, "baseline": 0.021,
    ...                  "against": "uniform attention"})
    >>> plain_words("what followed last time", row)
    'what followed last time 0.86 [0.79, 0.92], uniform attention 0.02'
    """
    return f"{what} {value_text(row)}, {row['against']} {row['baseline']:.2f}"


@dataclass(frozen=True)
class Induction(TrialRole):
    """Heads whose mean weight on the token after the first occurrence is high.

    Olsson et al. 2022: prefix matching. The paper draws no line; the threshold is ours. The label
    says whether such a head also raises the right token.
    """

    least: float = 0.3
    #: The level of the tests, Holm over all heads.
    level: float = 0.05
    kind = INDUCTION
    name = column = "induction"
    reads = ("induction", roles.TRIALS)
    measured = "what followed this token before"

    def label(self, table: HeadTable, row: pd.Series) -> str:
        """Whether the head copies as well."""
        copying = passing_rows(table, "induction_effect", least=0.0, level=self.level)
        heads = {roles.head_of(other) for _, other in copying.iterrows()}
        return "matches and copies" if roles.head_of(row) in heads else "matches prefixes"

    def evidence(self, table: HeadTable, row: pd.Series) -> str:
        """With what the head adds to the right token, where that was measured."""
        rows = table.details[roles.TRIALS]
        same = (rows[["stack", "layer", "head"]] == list(roles.head_of(row))).all(axis=1)
        effect = rows.loc[same & (rows["column"] == "induction_effect"), "value"]
        more = f", adds {effect.iloc[0]:+.2f} nats to the right token" if len(effect) else ""
        return super().evidence(table, row) + more


RETRIEVAL = roles.kind_beside(__file__, "retrieval")


@dataclass(frozen=True)
class Retrieval(TrialRole):
    """Heads that point at a needle's tokens while they are copied.

    Wu et al. 2024, section 2: a retrieval score of 0.1 or more. As in the paper, only a model that
    does find the needle can have such heads.
    """

    least: float = 0.1
    #: The share of the answer that the model itself must get right for the score to mean anything.
    trusted: float = 0.5
    #: The level of the test, Holm over all heads.
    level: float = 0.05
    kind = RETRIEVAL
    name = column = "retrieval"
    reads = ("retrieval", roles.TRIALS, roles.MEASURES)
    measured, usual_label = "the token to be copied", "copies from far back"

    def judge(self, table: HeadTable) -> list[roles.Verdict]:
        """The heads that retrieve, if the model does."""
        return super().judge(table) if _right(table) >= self.trusted else []

    def evidence(self, table: HeadTable, row: pd.Series) -> str:
        """With what the model itself gets right."""
        return f"{super().evidence(table, row)}, the model gets {_right(table):.2f} right"


def _right(table: HeadTable) -> float:
    """The share of the needles' tokens that the model itself gets right; NaN where not known."""
    rows = table.details.get(roles.MEASURES)
    if rows is None:
        return float("nan")
    wanted = (rows["trial"] == "needle") & (rows["name"] == "right tokens of the answer")
    return float(rows.loc[wanted, "value"].mean())


DUPLICATE = roles.kind_beside(__file__, "duplicate")


@dataclass(frozen=True)
class Duplicate(TrialRole):
    """Heads whose mean weight on the other occurrence of a token is high.

    Wang et al. 2023, section 3. The paper draws no line; the threshold is ours.
    """

    least: float = 0.3
    #: The level of the test, Holm over all heads.
    level: float = 0.05
    kind = DUPLICATE
    name = column = "duplicate"
    reads = ("duplicate", roles.TRIALS)
    measured, usual_label = "the same token elsewhere", "same token"


PREVIOUS = roles.kind_beside(__file__, "previous")


@dataclass(frozen=True)
class Previous(TrialRole):
    """Heads that put most of their weight on the token before, on random text.

    Elhage et al. 2021 and Olsson et al. 2022: in random tokens nothing but the place can be
    followed. Half of the weight is asked for, as Clark et al. 2019, section 3.1, count such heads.
    """

    least: float = 0.5
    #: The level of the test, Holm over all heads.
    level: float = 0.05
    kind = PREVIOUS
    name = "previous"
    column = "previous_random"
    reads = ("previous_random", roles.TRIALS)
    measured, usual_label = "the token before", "token before"

    def evidence(self, table: HeadTable, row: pd.Series) -> str:
        """With the survey's figure on natural text, where there is one."""
        value = table.head(roles.head_of(row)).get("previous")
        more = "" if value is None else f", on natural text {value:.2f}"
        return super().evidence(table, row) + more


# --- Alignment: heads that point to a word's translation -----------------------------------------

ALIGNMENT = roles.kind_beside(__file__, "alignment")


# Cross heads that point to the source token that a target token translates: Garg et al. 2019 while
# the token is predicted; Chen et al. 2020 (Shift-Att) while it is read. Neither draws a line: half
# of the links and 10 points above the diagonal are asked for, the margin that Voita et al. 2019,
# section 5.2, ask of syntactic heads.

#: Label to column: when a head looks at the source of a token.
WHEN = {"when read": "alignment_read", "when predicted": "alignment"}


@dataclass(frozen=True)
class Alignment:
    """Heads that point to a token's source more often than the diagonal does."""

    least: float = 0.5
    #: How far above the diagonal.
    margin: float = 0.1
    #: The level of the test, Holm over all heads.
    level: float = 0.05
    kind = ALIGNMENT
    name = "alignment"
    reads = ("alignment", "alignment_read", roles.TRIALS)

    @property
    def asks(self) -> tuple[tuple[str, str, float], ...]:
        """What it asks a share of, in words, the column, and the least."""
        return tuple((f"the translation of a token {w}", c, self.least) for w, c in WHEN.items())

    def judge(self, table: HeadTable) -> list[roles.Verdict]:
        """The heads that align, by when they do it."""
        found = [verdict for when in WHEN for verdict in self._judge(table, when)]
        return sorted(found, key=lambda verdict: -verdict.value)

    def _judge(self, table: HeadTable, when: str) -> list[roles.Verdict]:
        return roles.row_verdicts(
            passing_rows(table, WHEN[when], least=self.least, level=self.level, margin=self.margin),
            self.name,
            lambda row: when,
            lambda row: plain_words(f"the source of a token {when}", row),
        )

    def chance(self, twin: HeadTable, verdict: roles.Verdict) -> float:
        """The value of the twin's best head."""
        return roles.best_of(twin, WHEN[verdict.label], verdict.head.stack)
