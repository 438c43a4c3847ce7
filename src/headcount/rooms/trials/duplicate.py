"""Duplicate-token heads (Wang et al. 2023, section 3)."""

from __future__ import annotations

from dataclasses import dataclass

from headcount.surveys.roles import TRIALS, Kind, TrialRole

DUPLICATE = Kind(
    "duplicate",
    "looks at the same token earlier",
    paper="Wang et al. 2023",
    rank=70,
    telling=80,
    sign="❐",
    light="#6e5853",
    dark="#b0a491",
    glyph="M2 6H10V14H2ZM6 6V2H14V10H10",
    shows="repeated",
)


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
    reads = ("duplicate", TRIALS)
    measured, usual_label = "the same token elsewhere", "same token"
