"""A model before and after fine-tuning on GLUE tasks, on texts of each task's dev file."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np

import headcount as hc
from headcount.errors import UsageError
from headcount.rooms.compare.runs import Changes

__all__ = ["changes", "told"]


def changes(config: dict[str, Any], data: Path, models: Path, seed: int) -> dict[str, Changes]:
    """By fine-tuned model, named TASK-SEED."""
    base, found = hc.load(config["base"]), {}
    for task in config["tasks"]:
        texts = _texts(task, data / "glue", config["texts"], seed)
        for folder in sorted(models.glob(f"{config['base']}-{task}-*")):
            name = folder.name.removeprefix(f"{config['base']}-")
            found[name] = hc.compare(base, hc.load(folder), texts, max_length=128, long="truncate")
            print(f"{name}: done", flush=True)
    if not found:
        raise UsageError(f"There is no {config['base']}-TASK-SEED in {models}; make them first.")
    return found


def _texts(task: str, folder: Path, count: int, seed: int) -> list[Any]:
    rows = list(hc.tasks.glue(task, folder, split="dev").examples)
    chosen = sorted(random.Random(seed).sample(range(len(rows)), min(count, len(rows))))
    picked = [rows[place] for place in chosen]
    return [row.text if row.second is None else (row.text, row.second) for row in picked]


def told(found: Changes) -> dict[str, Any]:
    """Cosines by head, layers with their test, the columns that changed in most heads."""
    cosine = found.heads["cosine"].xs("enc", level="stack").unstack("head")
    about = found.provenance
    return {
        "texts": about["texts"],
        "cosine": np.round(cosine.to_numpy(), 4).tolist(),
        "layers": found.layers.to_dict("records"),
        "last_two": _last_two(found),
        "columns": found.sure().to_dict("records"),
        "most_changed": {
            ".".join(map(str, key)): round(float(value), 4)
            for key, value in found.largest(5)["cosine"].items()
        },
        "weights": {"before": about["weights"], "after": about["after_weights"]},
        "data": about["data"],
        "versions": about["versions"],
    }


def _last_two(found: Changes) -> dict[str, Any]:
    """Whether the two layers that changed most are the last two."""
    order = np.argsort(found.layers["cosine"].to_numpy())
    layers = found.layers["layer"].to_numpy()
    most = sorted(int(layer) for layer in layers[order[:2]])
    first, rest = found.layers["cosine"].to_numpy()[-2:], found.layers["cosine"].to_numpy()[:-2]
    return {
        "most_changed_layers": most,
        "they_are_the_last_two": most == [int(layer) for layer in layers[-2:]],
        "mean_cosine_last_two": float(first.mean()),
        "mean_cosine_others": float(rest.mean()),
    }
