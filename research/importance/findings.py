"""What the tables say: Michel et al.'s tables 1 to 3, and the figures behind the plots."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import headcount as hc
from headcount.records import HeadTable, parse_head
from headcount.rooms.agreement.agreement import agreement
from research.importance.over_training import dynamics, settling

from .cases import SCORES, Case
from .measure import Measured, of_json

LEVEL = 0.05


def findings(case: Case, tables: Measured) -> dict[str, Any]:
    """One case in numbers."""
    assert tables.scores is not None
    assert tables.alone is not None
    found = {
        "examples": case.examples,
        "examples without heads": case.ablated,
        "model": case.model,
        "scores": {
            name: _values(tables.ablated if name == "ablation" else tables.scores, name)
            for name in SCORES
        },
        "loss": _costs(tables.ablated),
        "best single heads by loss": _rows(tables.alone.details["best_single_heads"]),
        "about": _about(tables.scores),
    }
    if tables.judged is not None:
        found["judged"] = _costs(tables.judged) | {"examples": case.judged}
        found["judged"]["after"] = _after(tables.judged)
    if tables.judged_alone is not None:
        found["best single heads"] = _rows(tables.judged_alone.details["best_single_heads"])
    return found


def again(case: Case, tables: Measured, known: dict[str, Any]) -> dict[str, Any]:
    """A case whose loss without each head was measured anew; all else stays."""
    return known | {
        "examples without heads": case.ablated,
        "scores": known["scores"] | {"ablation": _values(tables.ablated, "ablation")},
        "loss": _costs(tables.ablated),
        "about the loss without heads": _origin(tables.ablated),
    }


def _values(table: hc.HeadTable, name: str) -> dict[str, float]:
    return {str(h): round(v, 5) for h, v in zip(table.heads, table.numbers(name), strict=True)}


def _costs(table: hc.HeadTable) -> dict[str, Any]:
    """Michel et al.'s table 1: which heads change the metric beyond chance, and which way."""
    about = table.origins.get("ablation", table.provenance)["settings"]
    frame = table.frame[["ablation", "ablation_p_adjusted"]].copy()
    frame["name"] = [str(head) for head in table.heads]
    sure = frame[frame["ablation_p_adjusted"] < LEVEL]
    cost, gain = sure[sure["ablation"] > 0], sure[sure["ablation"] < 0]
    return {
        "metric": about["metric"],
        "baseline": round(about["baseline"], 4),
        "heads": len(table),
        "cost something": _by_stack(cost),
        "better gone": _by_stack(gain),
        "most": {row["name"]: round(row["ablation"], 4) for _, row in _most(frame).iterrows()},
        "range": [round(float(end(frame["ablation"])), 4) for end in (np.min, np.max)],
    }


def _most(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.sort_values("ablation", ascending=False).head(5)


def _by_stack(frame: pd.DataFrame) -> dict[str, int]:
    counts = frame.groupby(level="stack").size()
    return {str(stack): int(count) for stack, count in counts.items() if count}


def _after(table: hc.HeadTable) -> dict[str, float]:
    """Michel et al.'s figure 1: the metric with each head masked."""
    base = table.origins.get("ablation", table.provenance)["settings"]["baseline"]
    return {head: round(base - cost, 5) for head, cost in _values(table, "ablation").items()}


def _rows(frame: pd.DataFrame) -> list[dict[str, Any]]:
    return frame.round(5).to_dict("records")


def _about(table: hc.HeadTable) -> dict[str, Any]:
    remarks = table.origins.get("contribution", table.provenance)["remarks"]
    return _origin(table) | {"contribution": remarks}


def _origin(table: hc.HeadTable) -> dict[str, Any]:
    """Provenance without anything of a machine."""
    kept = ("model", "revision", "weights", "data", "seed", "versions", "platform", "time")
    return {key: table.provenance[key] for key in kept}


def agreements(cases: dict[str, dict[str, Any]]) -> pd.DataFrame:
    """Every two scores on every two sets of examples, by the scores that the JSON has."""
    tables = {name: of_json(case) for name, case in cases.items()}
    return agreement(tables, SCORES, kinds=["spearman", "pearson"]).round(4)


def read_dynamics(path: Any) -> pd.DataFrame:
    """The frame of `dynamics` from a `dynamics.json`: snapshots with a value for each head."""
    snapshots = json.loads(Path(path).read_text(encoding="utf-8"))["snapshots"]

    def table(values: Any) -> HeadTable:
        heads = [parse_head(name) for name in values]
        return HeadTable.of(heads, {"gradient": list(values.values())})

    return dynamics(((one["step"], one["gradient"]) for one in snapshots), table)


def over_training(path: Any) -> list[dict[str, Any]]:
    """How near each snapshot's order of heads is to the last one's."""
    return _rows(settling(read_dynamics(path)))
