"""Attention sinks (Xiao et al. 2024; Gu et al. 2025)."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from headcount.records import HeadTable
from headcount.rooms.trials import TrialRole
from headcount.surveys.roles import TRIALS, head_of, kind_beside

SINK = kind_beside(__file__, "sink")


#: The details of which token is the sink, with and without a begin-of-sequence token.
SINKS = "sinks"
#: Rows up to this place are not asked for their sink: they see little else.
SINK_AFTER = 4


@dataclass(frozen=True)
class Sink(TrialRole):
    """Heads whose mean weight on the first token, from later ones, is high.

    Xiao et al. 2024; the line is that of Gu et al. 2025: a mean weight above 0.3 in windows of 64
    tokens. On shorter texts even uniform attention gives the first token much, so the line moves
    with it: the odds of the first token against the others must be as many times those of uniform
    attention as 0.3 is in such a window.
    """

    least: float = 0.3
    #: The tokens of a window in which the line is `least`; None holds it whatever the length.
    window: int | None = 64
    #: The level of the test, Holm over all heads.
    level: float = 0.05
    kind = SINK
    name = column = "sink"
    reads = ("sink", TRIALS, SINKS)
    measured = "first token"

    def line(self, table: HeadTable, rows: pd.DataFrame) -> pd.Series:
        """The line at the length of the texts, which the share of uniform attention tells."""
        if self.window is None or "uniform" not in table.details[SINKS]:
            return super().line(table, rows)
        sinks = table.details[SINKS].drop_duplicates(["stack", "layer", "head"])
        keys = ["stack", "layer", "head"]
        uniform = rows[keys].merge(sinks[[*keys, "uniform"]], how="left")["uniform"].to_numpy()
        places = range(SINK_AFTER + 1, self.window + 1)
        usual = sum(1 / place for place in places) / len(places)
        odds = self.least / (1 - self.least) * (1 - usual) / usual
        odds = odds * uniform / (1 - uniform)
        return pd.Series(odds / (1 + odds), rows.index)

    def label(self, table: HeadTable, row: pd.Series) -> str:
        """The first token, unless another one is looked at more often."""
        own = _sinks(table, row).iloc[0]
        return "first token" if own["first_top"] >= own["token_top"] else f"'{own['token']}'"

    def evidence(self, table: HeadTable, row: pd.Series) -> str:
        """With the texts that rest there, and the weight when texts begin otherwise."""
        sinks = _sinks(table, row)
        words = f"{super().evidence(table, row)}, in {sinks['resting_texts'].iloc[0]:.0%} of texts"
        others = sinks.iloc[1:]
        return words + "".join(
            f", {text} {value:.2f}"
            for text, value in zip(others["text"], others["value"], strict=True)
        )


def _sinks(table: HeadTable, row: pd.Series) -> pd.DataFrame:
    """A head's rows of `sinks`, the one of texts as they are written first."""
    sinks = table.details[SINKS]
    own = sinks[(sinks[["stack", "layer", "head"]] == list(head_of(row))).all(axis=1)]
    return own.sort_values("text", key=lambda text: text != "as written", kind="stable")


# --- Heads that rest at the end of the source -----------------------------------------------------

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
