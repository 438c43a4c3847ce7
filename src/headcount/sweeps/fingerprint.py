"""What must be equal for the units of an old sweep to count in a new one."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from headcount.provenance import hash_strings
from headcount.subject import Subject
from headcount.sweeps.intervention import Intervention
from headcount.tasks.task import Task
from headcount.text.batch import Batch

__all__ = ["fingerprint"]


def fingerprint(
    subject: Subject,
    task: Task,
    interventions: Sequence[Intervention],
    batches: Sequence[Batch],
    reference: Task | None,
) -> dict[str, Any]:
    """Model, data and interventions, by names that an error can use."""
    about = task.describe()
    heads = [f"{one.name}: {one.mode} {','.join(map(str, one.heads))}" for one in interventions]
    return {
        "weights": subject.weights_hash,
        "device": subject.device.type,
        "data": about.pop("hash"),
        **{f"task {key}": value for key, value in about.items() if key != "data"},
        "mode": ", ".join(dict.fromkeys(one.mode for one in interventions)),
        "first intervention": interventions[0].name,
        "interventions": f"{len(heads)} ({hash_strings(heads)})",
        "reference": None if reference is None else reference.hash,
        "tokens": _tokens(batches),
    }


def _tokens(batches: Sequence[Batch]) -> str:
    """A hash of what the model is given: another tokenizer gives other tokens."""
    digest = hashlib.sha256()
    for batch in batches:
        for name, tensor in sorted(batch.inputs.items()):
            digest.update(f"{name} {tuple(tensor.shape)}\n".encode())
            digest.update(tensor.cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()
