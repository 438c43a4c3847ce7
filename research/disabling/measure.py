"""Disable every head and every layer of a classifier; what was swept is kept and goes on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import headcount as hc
from headcount.importance.sweeps.interventions import Intervention, single_heads, whole_layers
from headcount.importance.sweeps.sweeping import Sweep, sweep
from headcount.records.journal import Journal


def classifier(folder: Path, name: str, device: str) -> hc.Subject:
    """A fine-tuned model, called by its name and not by its place."""
    subject = hc.load(str(folder / name), device=device)
    subject.name, subject.source = name, name
    return subject


def swept(
    subject: hc.Subject,
    task: str,
    data: Path,
    config: dict[str, Any],
    work: Path,
    limit: int | None,
) -> Sweep:
    """All interventions of all modes in one sweep on a task's dev set."""
    examples = replace(hc.tasks.glue(task, data / "glue"), name=f"{task} dev")
    if limit is not None:
        examples = examples.limit(limit, config["seed"])
    work.mkdir(parents=True, exist_ok=True)
    with Journal.open(work / f"{task}.jsonl", {"task": task}) as journal:
        return sweep(
            subject,
            examples,
            [one for mode in config["modes"] for one in interventions(subject, mode)],
            metric="task",
            batch_size=config["batch_size"],
            journal=journal,
            name=f"disabling {task}",
        )


def interventions(subject: hc.Subject, mode: Any) -> list[Intervention]:
    """Heads, then layers, with names that tell the mode."""
    layers = whole_layers(subject.anatomy, mode)
    named = [Intervention(one.heads, mode, f"{one.name} {mode}") for one in layers]
    return single_heads(subject.anatomy, mode) + named
