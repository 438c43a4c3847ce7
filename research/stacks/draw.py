"""Michel et al.'s figure 4: BLEU as one stack alone loses its heads."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd

import headcount as hc

__all__ = ["draw"]

WHOLE = 48  # heads of a stack


def draw(results: Path, out: Path) -> None:
    """A line a stack, heads from the least important on."""
    path = results / "pruning-by-stack.json"
    if not path.exists():
        return
    told = json.loads(path.read_text())
    rows = [
        {"scope": stack, "left": WHOLE, "bleu": told["whole"]} for stack in ("enc", "dec", "cross")
    ]
    for row in told["stacks"]:
        ends = {end: told["whole"] + row[end] for end in ("low", "high")}
        rows.append({"scope": row["stack"], "left": row["left"], "bleu": row["bleu"], **ends})
    frame = pd.DataFrame(rows).rename(columns={"left": "heads_left", "bleu": "value"})
    frame = frame.assign(order="gradient", metric="BLEU", step=WHOLE - frame["heads_left"])
    hc.plot.pruning_by_stack(frame, path=out / "pruning-by-stack.svg")
