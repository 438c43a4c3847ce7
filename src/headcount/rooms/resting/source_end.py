"""Heads that look at the end of the source (Voita et al. 2019)."""

from __future__ import annotations

from dataclasses import dataclass

from headcount.surveys.roles import TRIALS, TrialRole, kind_beside

SOURCE_END = kind_beside(__file__, "source-end")


@dataclass(frozen=True)
class SourceEnd(TrialRole):
    """Heads whose mass is mostly on the source's end token and final punctuation.

    The sink of cross attention; half of the mass is asked for, a threshold of ours.
    """

    least: float = 0.5
    #: The level of the test, Holm over all heads.
    level: float = 0.05
    kind = SOURCE_END
    name = "source-end"
    column = "source_end"
    reads = ("source_end", TRIALS)
    measured, usual_label = "the end of the source", "end of source"
