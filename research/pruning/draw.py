"""Michel et al.'s figure 3 for classifiers and for a language model, with learned sets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd

import headcount as hc
from research.names import title

__all__ = ["draw"]


def draw(results: Path, out: Path) -> None:
    """Every figure for which there are numbers."""
    classifiers, smollm2 = (results / f"pruning-{part}.json" for part in ("classifiers", "smollm2"))
    if classifiers.exists():
        cases = json.loads(classifiers.read_text())["cases"]
        curves = {f"{title(name)}, as it is": _bare(case) for name, case in cases.items()}
        healed = {f"{title(name)}, healed": _healed(case) for name, case in cases.items()}
        curves |= {name: rows for name, rows in healed.items() if len(rows)}
        hc.plot.pruning_curves(curves, path=out / "pruning-classifiers.svg")
    if smollm2.exists():
        rows = _groups(json.loads(smollm2.read_text()))
        place = out / "pruning-smollm2.svg"
        hc.plot.pruning_curves(rows, log=True, unit="groups", width="column", path=place)


def _bare(case: dict[str, Any]) -> pd.DataFrame:
    """Sets as they are; every order begins at the whole model."""
    rows = pd.DataFrame(case["curve"])
    rows = rows[~rows["healed"]]
    return _from_whole(rows, value=case["whole"], heads_left=case["heads"])


def _healed(case: dict[str, Any]) -> pd.DataFrame:
    """Sets that were trained on; every order begins at the whole model trained as long."""
    rows = pd.DataFrame(case["curve"])
    rows = rows[rows["healed"]].assign(healed=False)  # they have a panel of their own
    control = rows[rows["order"] == "whole"]["value"]
    value = float(control.iloc[0]) if len(control) else case["whole"]
    return _from_whole(rows[rows["order"] != "whole"], value=value, heads_left=case["heads"])


def _groups(told: dict[str, Any]) -> pd.DataFrame:
    """The perplexity over groups that are left."""
    rows = pd.DataFrame(told["curve"])
    rows = rows.assign(
        metric="perplexity",
        heads_left=rows["units_left"],
        value=rows["perplexity"],
        low=rows["perplexity_low"],
        high=rows["perplexity_high"],
    )
    return _from_whole(rows, value=told["whole"]["perplexity"], heads_left=told["groups"])


def _from_whole(rows: pd.DataFrame, **whole: Any) -> pd.DataFrame:
    """The rows, and before those of each order one of the whole model."""
    bare = rows[~rows["healed"]]
    first = bare.drop_duplicates("order").assign(step=0, low=None, high=None, **whole)
    return pd.concat([first, rows], ignore_index=True)
