"""A role: a rule that reads what was measured of every head and returns verdicts.

Voita et al., ACL 2019, section 5, were the first to give heads functions by such rules.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Protocol

from headcount.heads import Head
from headcount.roles.kinds import kind_of
from headcount.table import HeadTable

__all__ = ["Role", "Verdict", "best_of"]

_UNKNOWN = math.nan


@dataclass(frozen=True)
class Verdict:
    """One role of one head, with the figures it rests on; a head may have several.

    >>> verdict = Verdict(Head("enc", 5, 3), "syntactic", "nsubj dep->head", 0.71, 0.68, 0.74,
    ...                   n=820, baseline=0.45, control=0.22,
    ...                   evidence="nsubj dep->head 0.71 [0.68, 0.74], offset baseline 0.45")
    >>> str(verdict)
    'enc.5.3 syntactic: nsubj dep->head 0.71 [0.68, 0.74], offset baseline 0.45, random twin 0.22'
    """

    head: Head
    #: One of `KINDS`.
    role: str
    #: Which of its kind: "offset -1", "nsubj dep->head"; a word or two.
    label: str
    #: The figure that decides, with the ends of its 95% interval.
    value: float
    low: float = _UNKNOWN
    high: float = _UNKNOWN
    #: How many cases (tokens, arcs, trials) it is over.
    n: int = 0
    #: What the same figure would be without looking: the best offset, a chance pick.
    baseline: float = _UNKNOWN
    #: What the best head of a randomly initialised twin gets.
    control: float = _UNKNOWN
    p: float = _UNKNOWN
    #: Corrected over all heads that were tested together.
    p_adjusted: float = _UNKNOWN
    #: The figures in words, without the control.
    evidence: str = ""

    def __post_init__(self) -> None:
        """Refuse a role that is not on the list."""
        kind_of(self.role)

    @property
    def in_words(self) -> str:
        """The evidence, and the random twin where one was asked."""
        twin = "" if math.isnan(self.control) else f", random twin {self.control:.2f}"
        return self.evidence + twin

    def __str__(self) -> str:
        return f"{self.head} {self.role}: {self.in_words}"

    def beside(self, control: float) -> Verdict:
        """The same verdict with the twin's figure."""
        return replace(self, control=control)


class Role(Protocol):
    """The protocol of a role: a dataclass whose thresholds are its fields."""

    @property
    def name(self) -> str:
        """One of `KINDS`."""

    @property
    def reads(self) -> tuple[str, ...]:
        """The columns and the details of the table that it judges; without them it is silent."""

    def judge(self, table: HeadTable) -> list[Verdict]:
        """The verdicts that hold, the strongest first."""

    def chance(self, twin: HeadTable, verdict: Verdict) -> float:
        """What the best head of a random twin's table gets on the verdict's own question."""


def best_of(table: HeadTable, column: str, stack: str) -> float:
    """The highest value of a column in a stack; NaN where nothing was measured.

    >>> heads = [Head("enc", 0, 0), Head("enc", 0, 1)]
    >>> best_of(HeadTable.of(heads, {"rare": [0.2, 0.3]}), "rare", "enc")
    0.3
    """
    if column not in table.frame or stack not in table.stacks:
        return _UNKNOWN
    return float(table.stack(stack).frame[column].max())
