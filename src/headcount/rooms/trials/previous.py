"""Previous-token heads (Elhage et al. 2021; Olsson et al. 2022)."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from headcount.records import HeadTable
from headcount.surveys.roles import TRIALS, Kind, TrialRole, head_of

PREVIOUS = Kind(
    "previous",
    "looks at the token before",
    paper="Elhage et al. 2021",
    rank=80,
    telling=60,
    sign="«",
    light="#261d6c",
    dark="#5594cf",
    glyph="M12.5 3 7.5 8 12.5 13M7 3 2 8 7 13",
    shows="before",
)


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
    reads = ("previous_random", TRIALS)
    measured, usual_label = "the token before", "token before"

    def evidence(self, table: HeadTable, row: pd.Series) -> str:
        """With the survey's figure on natural text, where there is one."""
        value = table.head(head_of(row)).get("previous")
        more = "" if value is None else f", on natural text {value:.2f}"
        return super().evidence(table, row) + more
