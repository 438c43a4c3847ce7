"""The figures of the page: Michel's and Voita's from `hc.plot`, and how far scores agree."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd

import headcount as hc
from headcount.records.heads import parse_head
from research.names import title
from research.roles.store import read_surveys

from .draw_agreement import draw_agreement
from .draw_alone import draw_alone
from .measure import of_json

__all__ = ["draw"]


def draw(results: Path, out: Path) -> None:
    """Every figure for which there are numbers."""
    told = json.loads((results / "importance.json").read_text())
    judged = {n: case["judged"] for n, case in told["cases"].items() if "judged" in case}
    if judged:
        without = {
            f"{title(n)}, {one['examples']} examples": _judged(one) for n, one in judged.items()
        }
        hc.plot.scores_without_one_head(without, path=out / "importance-masked.svg")
    tables = {
        name: of_json(case) for name, case in told["cases"].items() if case["model"] == "translator"
    }
    _translator(tables, _roles(results), out)
    for group, rows in told["agreement"].items():
        draw_agreement(rows, out / f"importance-agreement-{group}.svg")
    by_stack = results / "pruning-by-stack.json"
    known = json.loads(by_stack.read_text()) if by_stack.exists() else {}
    draw_alone(told["cases"], known, out / "importance-one-head.svg")
    runs = {name: pd.DataFrame(rows) for name, rows in told["over training"].items()}
    hc.plot.order_over_training(runs, width="page", path=out / "importance-training.svg")


def _translator(tables: dict[str, hc.HeadTable], roles: pd.DataFrame, out: Path) -> None:
    """Voita et al.'s figures 1 and 2 with roles, one score against the other, two data sets."""
    if not tables:
        return
    named = {title(name): table for name, table in tables.items()}
    hc.plot.two_scores(named, second="contribution", path=out / "importance-two-scores.svg")
    first, *others = tables
    if len(roles):
        tables[first].details["roles"] = roles
    hc.plot.head_grids(
        tables[first], ("contribution", "confidence"), path=out / "importance-relevance.svg"
    )
    if others:
        names = (title(first), title(others[0]))
        place = out / "importance-data-sets.svg"
        hc.plot.two_data_sets(tables[first], tables[others[0]], names=names, path=place)


def _judged(judged: dict[str, Any]) -> hc.HeadTable:
    """What each head costs, with how the whole model scores."""
    cost = [judged["baseline"] - after for after in judged["after"].values()]
    unit = "BLEU" if judged["metric"] == "bleu" else judged["metric"]
    settings = {"metric": unit, "baseline": judged["baseline"]}
    return hc.HeadTable.of(
        [parse_head(name) for name in judged["after"]],
        {"ablation": cost},
        [hc.Column("ablation", unit=unit)],
        origins={"ablation": {"settings": settings}},
    )


def _roles(results: Path) -> pd.DataFrame:
    """Verdicts on the same model and text, where the roles were surveyed."""
    verdicts = read_surveys(results).get("de-tatoeba", {}).get("roles", [])
    rows = [(*parse_head(row["head"]), row["role"]) for row in verdicts]
    return pd.DataFrame(rows, columns=["stack", "layer", "head", "role"])
