"""Heads that rest on the end of the source (Voita et al. 2019)."""

from __future__ import annotations

from dataclasses import dataclass

from headcount.surveys.roles import TRIALS, Kind, TrialRole

SOURCE_END = Kind(
    "source-end",
    "looks much at the end of the source",
    paper="Voita et al. 2019",
    says="place",
    rank=150,
    sign="⇥",
    light="#6c2448",
    dark="#da452c",
    glyph="M2 8H10.5M7 4.4 10.8 8 7 11.6M14 2.5V13.5",
)


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
