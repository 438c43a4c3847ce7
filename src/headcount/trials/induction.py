"""Induction: does a head look at what came after this token last time?

Olsson et al. 2022, prefix matching: on random tokens said twice, the mean weight from a token
of the repeat to the token that followed its first occurrence.
"""

from __future__ import annotations

from headcount.columns import Column
from headcount.trials.at_offset import AtOffset, Rows
from headcount.trials.layout import Layout
from headcount.trials.question import Finding

__all__ = ["INDUCTION", "induction_question"]

INDUCTION = Column(
    "induction",
    meaning="Mean weight on the token that followed this one before, in random tokens said twice.",
    paper="Olsson et al. 2022, prefix matching",
    range=(0, 1),
    direction="higher",
    more="more inductive",
    group="What it finds again",
)

_SILENT = {
    "enc": "a head that sees both sides of a token need not look for what followed it",
    "cross": "queries and keys are different texts",
}


def induction_question(layout: Layout) -> AtOffset:
    """From the repeat back to one place after the first occurrence.

    >>> induction_question(Layout(5, {"target": 1})).rows("target", True)
    {-4: slice(6, 11, None)}
    """
    offset = 1 - layout.length

    def rows(side: str, causal: bool) -> Rows:
        return {offset: layout.second(side)} if causal else {}

    finding = Finding(INDUCTION, "uniform attention", silent=dict(_SILENT))
    return AtOffset(finding, frozenset({offset}), rows)
