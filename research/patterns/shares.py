"""Shares of patterns by layer and task: MiniLM as it is and as it was fine-tuned."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import Any

import headcount as hc
from headcount.rooms.agreement.ranks import rank_agreement
from headcount.rooms.patterns.tally import PATTERNS, layer_shares

TASKS = {
    "sst2": "minilm-sst2-0",
    "mrpc": "minilm-mrpc-0",
    "rte": "minilm-rte-0",
    "cola": "minilm-cola-0",
}


def task_shares(config: dict[str, Any], data: Path, classifiers: Path) -> dict[str, Any]:
    """For each task: the shares of the base model and of the classifier on the same texts."""
    found: dict[str, Any] = {}
    base = hc.load("minilm")
    for task, name in TASKS.items():
        texts = hc.tasks.glue(task, data / "glue").limit(config["examples"], 0).texts()
        tuned = hc.load(str(classifiers / name))
        found[task] = {"base": _shares(base, texts, config), "tuned": _shares(tuned, texts, config)}
        print(f"shares of {task} done", flush=True)
    return found


def same_vertical(found: dict[str, Any]) -> dict[str, list[float]]:
    """Whether the same heads are vertical: rank agreement of two tasks, of the tuned models."""
    told = {}
    for one, two in combinations(found, 2):
        heads = [found[task]["tuned"]["vertical by head"] for task in (one, two)]
        agreed = rank_agreement(*heads)
        told[f"{one} and {two}"] = [
            round(float(x), 4) for x in (agreed.value, agreed.low, agreed.high)
        ]
    return told


def _shares(subject: hc.Subject, texts: Any, config: dict[str, Any]) -> dict[str, Any]:
    table = hc.survey(
        subject,
        texts,
        columns=["pattern"],
        tallies=["patterns"],
        reading=hc.ReadingOptions(batch_size=config["batch_size"]),
    )
    layers = layer_shares(table)
    rows = table.details["patterns"]
    heads = rows[rows["pattern"] == "vertical"].set_index(["layer", "head"])["share"]
    overall = {name: round(float(layers[name].mean()), 4) for name in PATTERNS}
    return {
        "maps": int(table.details["patterns"]["n"].sum() / len(PATTERNS)),
        "all": overall,
        "layers": {name: layers[name].round(4).tolist() for name in PATTERNS},
        "vertical by head": heads.round(4).tolist(),
        "most frequent": table.frame["pattern"].value_counts().to_dict(),
    }
