"""Where a score comes from: the model, the task, and how it was asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headcount import provenance
from headcount.subject import Subject
from headcount.tasks.task import Task

__all__ = ["origin"]


def origin(
    subject: Subject,
    task: Task,
    *,
    convention: str = "headcount",
    seed: int | None = None,
    settings: dict[str, Any] | None = None,
    remarks: Sequence[str] = (),
) -> dict[str, Any]:
    """A score's provenance, in the words of `headcount.provenance`."""
    about = subject.describe()
    return provenance.collect(
        model=subject.name,
        revision=subject.revision,
        weights=about["weights_hash"],
        subject=about,
        task=task.describe(),
        corpus=task.name,
        data=task.hash,
        convention=convention,
        seed=seed,
        settings=settings or {},
        counts={"examples": len(task)},
        remarks=list(remarks),
    )
