"""The figures of the page: Clark's and Kovaleva's from `hc.plot`, and roles layer by layer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

import headcount as hc
from headcount.records.heads import parse_head
from research.tables import table

from .draw_layers import draw_layers
from .reading import Surveys, annotated
from .store import read_surveys

__all__ = ["draw"]

RELATIONS = ("det", "aux", "amod", "obj", "case", "nsubj", "advmod", "mark", "conj", "all")
#: Surveys whose gradients are drawn, and the titles of their panels.
NOOP = {"minilm-ewt": "MiniLM, EWT", "e5-gum": "e5-small, GUM", "smollm2": "SmolLM2, EWT"}
COREFERENCE = {"minilm-gum": "MiniLM, GUM", "e5-gum": "e5-small, GUM"}

Rows = list[dict[str, Any]]


def draw(results: Path, out: Path) -> None:
    """Every figure for which there are numbers."""
    surveys = read_surveys(results)
    there = annotated(surveys)
    relations = {t: _heads(survey["best"]) for t, survey in there.items() if "best" in survey}
    if relations:
        hc.plot.dependencies(relations, RELATIONS, path=out / "roles-dependencies.svg")
    rests = {t: table({"index": one["index"], **one["columns"]}) for t, one in there.items()}
    if rests:
        hc.plot.to_separators(rests, path=out / "roles-separators.svg")
    noop = {title: pd.DataFrame(rows) for title, rows in _of(surveys, NOOP, "noop").items()}
    if noop:
        hc.plot.noop_gradients(noop, relative=True, path=out / "roles-noop.svg")
    linked = {t: _heads(rows) for t, rows in _of(surveys, COREFERENCE, "coreference").items()}
    if linked:
        hc.plot.coreference(linked, path=out / "roles-coreference.svg")
    rows = {
        t: _first(survey["first_row"]) for t, survey in there.items() if survey.get("first_row")
    }
    if rows:
        hc.plot.first_row(rows, path=out / "roles-first-row.svg")
    draw_layers(surveys, out)


def _of(surveys: Surveys, titles: dict[str, str], part: str) -> dict[str, Rows]:
    """A part of those surveys that have it, under their titles."""
    chosen = {title: surveys.get(name, {}).get(part) for name, title in titles.items()}
    return {title: rows for title, rows in chosen.items() if rows}


def _heads(rows: Rows) -> pd.DataFrame:
    """Rows of chosen heads, judged on held-out sentences, as a run has them."""
    frame = pd.DataFrame([row for row in rows if row["accuracy"] is not None])
    heads = [parse_head(name) for name in frame["head"]]
    return frame.assign(
        stack=[head.stack for head in heads],
        layer=[head.layer for head in heads],
        head=[head.index for head in heads],
        split="report",
        baseline=frame["baseline"].astype(float),
    )


def _first(rows: Rows) -> pd.DataFrame:
    """Means over the heads of a layer: one row stands for all of them."""
    return pd.DataFrame(rows).assign(origin="first", split="all", head=0)
