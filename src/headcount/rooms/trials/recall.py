"""Heads that find again: induction, retrieval, duplicate tokens, the token before on random text.

Olsson et al. 2022; Wu et al. 2024; Wang et al. 2023; Elhage et al. 2021.
"""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from headcount.records import HeadTable
from headcount.surveys import roles

INDUCTION = roles.kind_beside(__file__, "induction")


@dataclass(frozen=True)
class Induction(roles.TrialRole):
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
        copying = roles.passing_rows(table, "induction_effect", least=0.0, level=self.level)
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
class Retrieval(roles.TrialRole):
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
class Duplicate(roles.TrialRole):
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
class Previous(roles.TrialRole):
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
