"""Do measures of importance rank heads alike? Spearman's correlation of each pair, by stack."""

from __future__ import annotations

from typing import Any

from headcount.report.safe_json import figure
from headcount.report.source import Source

__all__ = ["agreement_part"]

#: Measures that the toolkit has; those that were not taken are shown as missing.
_EXPECTED = ("gradient", "ablation", "relevance", "confidence")


def agreement_part(source: Source) -> dict[str, Any] | None:
    """Measures in order, and a row for each pair and stack; None where nothing was compared."""
    frame = source.frame("agreement")
    if frame is None:
        return None
    kind = "spearman" if "spearman" in set(frame["kind"]) else str(frame["kind"].iloc[0])
    rows = frame[frame["kind"] == kind]
    there = dict.fromkeys([*rows["first"], *rows["second"]])
    ordered = [name for name in _EXPECTED if name in there or name not in source.table.names]
    return {
        "kind": kind,
        "measures": [*ordered, *(str(name) for name in there if name not in _EXPECTED)],
        "rows": [
            [
                row["first"],
                row["second"],
                row["stack"],
                *(figure(row[k], 3) for k in ("value", "low", "high")),
                int(row["heads"]),
            ]
            for row in rows.to_dict("records")
        ],
    }
