"""Duplicate token: does a head look at the same token elsewhere in the text?

Wang et al. 2023, "Interpretability in the wild", section 3: on random tokens said twice, the
mean weight from a token to its other occurrence; for a head that looks back only, from the
repeat to the first occurrence.
"""

from __future__ import annotations

from headcount.columns import Column
from headcount.trials.at_offset import AtOffset, Rows
from headcount.trials.layout import Layout
from headcount.trials.question import Finding

__all__ = ["DUPLICATE", "duplicate_question"]

DUPLICATE = Column(
    "duplicate",
    title="Duplicate token",
    meaning="Mean weight on the other occurrence of the token, in random tokens said twice.",
    paper="Wang et al. 2023, section 3",
    range=(0, 1),
    direction="higher",
    group="What it finds again",
)

_SILENT = {"cross": "queries and keys are different texts"}


def duplicate_question(layout: Layout) -> AtOffset:
    """From the repeat to the first occurrence, and back where the head sees both.

    >>> duplicate_question(Layout(5, {"source": 0})).rows("source", False)
    {-5: slice(5, 10, None), 5: slice(0, 5, None)}
    """
    length = layout.length

    def rows(side: str, causal: bool) -> Rows:
        back = {-length: layout.second(side)}
        return back if causal else back | {length: layout.first(side)}

    finding = Finding(DUPLICATE, "uniform attention", silent=dict(_SILENT))
    return AtOffset(finding, frozenset({-length, length}), rows)
