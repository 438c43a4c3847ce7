"""All finished runs as one JSON: scores with intervals, settings, counts, provenance."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from itertools import combinations
from pathlib import Path
from typing import Any

from headcount.records.files import write_bytes

from .config import Config
from .rows import METRICS
from .score import difference, majority, score

__all__ = ["summarise", "write_summary"]

_TIMES = ("train_seconds", "seconds")
#: Without the command as typed, which names folders of the machine it ran on.
_ORIGIN = ("model", "weights", "data", "device", "versions", "platform", "time")


def write_summary(path: Path, config: Config, runs: Mapping[str, Any], notes: list[str]) -> None:
    """Write the summary of the runs."""
    text = json.dumps(summarise(config, runs, notes), indent=1, allow_nan=False)
    write_bytes(path, text.encode() + b"\n")


def summarise(config: Config, runs: Mapping[str, Any], notes: list[str]) -> dict[str, Any]:
    """Scores by model and task; the outputs of single rows stay in the journal."""
    held: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for run in sorted(runs.values(), key=lambda run: int(run["seed"])):
        held.setdefault(run["model"], {}).setdefault(run["task"], []).append(run)
    return {
        "command": "python -m research.glue",
        "config": asdict(config),
        "notes": notes,
        "results": {
            model: {task: _told(task, by_task[task]) for task in config.tasks if task in by_task}
            for model, by_task in held.items()
        },
        "differences": {
            f"{other} minus {model}": _differences(held[other], held[model])
            for model, other in combinations(held, 2)
        },
    }


def _differences(
    ours: dict[str, list[dict[str, Any]]], theirs: dict[str, list[dict[str, Any]]]
) -> dict[str, Any]:
    """By task and metric, where both models have been judged."""
    return {
        task: {metric: difference(runs, theirs[task], metric) for metric in METRICS[task]}
        for task, runs in ours.items()
        if task in theirs
    }


def _told(task: str, runs: list[dict[str, Any]]) -> dict[str, Any]:
    first = runs[0]
    return {
        **{metric: score(runs, metric) for metric in METRICS[task]},
        "majority_accuracy": majority(first),
        "rows": first["rows"],
        "note": first["note"],
        "steps": first["steps"],
        "loss": {str(run["seed"]): [round(loss, 4) for loss in run["loss"]] for run in runs},
        "times": {str(run["seed"]): {name: run[name] for name in _TIMES} for run in runs},
        "provenance": {key: first["provenance"][key] for key in _ORIGIN},
    }
