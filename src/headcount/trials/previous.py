"""Previous token on random text: does a head look one place back whatever stands there?

Elhage et al. 2021, "A mathematical framework for transformer circuits": the first half of an
induction circuit. The survey's column `previous` has the same weight on natural text.
"""

from __future__ import annotations

from headcount.columns import Column
from headcount.trials.at_offset import AtOffset, Rows
from headcount.trials.layout import Layout
from headcount.trials.question import Finding

__all__ = ["PREVIOUS_RANDOM", "previous_question"]

PREVIOUS_RANDOM = Column(
    "previous_random",
    title="Previous token, random text",
    meaning="Mean weight of a token on the one before it, in random tokens said twice.",
    paper="Elhage et al. 2021",
    range=(0, 1),
    direction="higher",
    group="What it finds again",
)

_SILENT = {"cross": "queries and keys are different texts"}


def previous_question(layout: Layout) -> AtOffset:
    """From every token of the sequence and its repeat but the first.

    >>> previous_question(Layout(5, {"source": 1})).rows("source", False)
    {-1: slice(2, 11, None)}
    """

    def rows(side: str, causal: bool) -> Rows:
        places = layout.both(side)
        return {-1: slice(places.start + 1, places.stop)}

    finding = Finding(PREVIOUS_RANDOM, "uniform attention", silent=dict(_SILENT))
    return AtOffset(finding, frozenset({-1}), rows)
