"""Shares of patterns by layer and task: MiniLM as it is and as it was fine-tuned."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import headcount as hc
from headcount.importance.score import texts_of_task
from headcount.survey.pattern_network import PATTERNS
from headcount.survey.patterns import layer_shares

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
        texts = texts_of_task(hc.tasks.glue(task, data / "glue").limit(config["examples"], 0))
        tuned = hc.load(str(classifiers / name))
        found[task] = {"base": _shares(base, texts, config), "tuned": _shares(tuned, texts, config)}
        print(f"shares of {task} done", flush=True)
    return found


def _shares(subject: hc.Subject, texts: Any, config: dict[str, Any]) -> dict[str, Any]:
    table = hc.survey(
        subject, texts, patterns=True, columns=["pattern"], batch_size=config["batch_size"]
    )
    layers = layer_shares(table)
    overall = {name: round(float(layers[name].mean()), 4) for name in PATTERNS}
    return {
        "maps": int(table.details["patterns"]["n"].sum() / len(PATTERNS)),
        "all": overall,
        "layers": {name: layers[name].round(4).tolist() for name in PATTERNS},
        "most frequent": table.frame["pattern"].value_counts().to_dict(),
    }
