"""Tables as trials leave them, with figures made up for the roles that read them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from headcount.records.heads import Head, parse_head
from headcount.records.table import HeadTable

Figures = Mapping[str, tuple[float, float, float]]  # head: value, baseline, corrected p


def trial_table(columns: Mapping[str, Figures], **details: Any) -> HeadTable:
    """A table of these columns, with their tests in the details."""
    heads = sorted({parse_head(name) for figures in columns.values() for name in figures})
    values = {
        column: [figures.get(str(head), (float("nan"),))[0] for head in heads]
        for column, figures in columns.items()
    }
    rows = [
        _row(parse_head(name), column, *figure)
        for column, figures in columns.items()
        for name, figure in figures.items()
    ]
    return HeadTable.of(heads, values, details={"trials": pd.DataFrame(rows), **details})


def _row(head: Head, column: str, value: float, baseline: float, p: float) -> dict[str, Any]:
    return {
        **dict(zip(("stack", "layer", "head"), head, strict=True)),
        **{"column": column, "value": value, "low": value - 0.05, "high": value + 0.05},
        **{"baseline": baseline, "p": p / 10, "p_adjusted": p, "n": 300, "examples": 20},
        "against": "the diagonal" if column.startswith("alignment") else "uniform attention",
    }


def sinks_of(rows: Mapping[str, Mapping[str, tuple[float, float, str, float]]]) -> pd.DataFrame:
    """Head and text to value, share of rows on the first token, the token most seen, its share."""
    return pd.DataFrame(
        [
            {
                **dict(zip(("stack", "layer", "head"), parse_head(name), strict=True)),
                **{"text": text, "value": value, "low": value, "high": value},
                **{"resting_texts": 0.75, "first_top": first, "token": token, "token_top": share},
            }
            for name, texts in rows.items()
            for text, (value, first, token, share) in texts.items()
        ]
    )
