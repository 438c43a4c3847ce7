"""The sweep: a task under many interventions, batch by batch, each finished unit on the disk."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack

import torch

from headcount.journal import Journal
from headcount.models.memory import enough_memory
from headcount.models.rest import at_rest
from headcount.progress import Progress
from headcount.subject import Subject
from headcount.sweeps.choose_way import choose_way
from headcount.sweeps.encoded import encoded
from headcount.sweeps.fingerprint import fingerprint
from headcount.sweeps.intervention import Intervention, check_interventions
from headcount.sweeps.job import Job
from headcount.sweeps.ledger import Ledger
from headcount.sweeps.measure import Measured, measured
from headcount.sweeps.modes import prepared
from headcount.sweeps.result import Sweep
from headcount.tasks.task import Task
from headcount.text.batch import Batch

__all__ = ["sweep"]


def sweep(
    subject: Subject,
    task: Task,
    interventions: Sequence[Intervention],
    *,
    metric: Measured | None = None,
    batch_size: int = 16,
    reference: Task | None = None,
    seed: int = 0,
    journal: Journal | None = None,
    name: str = "sweep",
    fast: bool = True,
    progress: Progress | None = None,
    announce: Callable[[str], None] | None = None,
) -> Sweep:
    """Evaluate a task under every intervention; nothing of the model is changed.

    `metric` is "loss" (teacher-forced, the default where the task has a loss) or "task" for the
    task's own. `batch_size` is the number of examples of one forward, all interventions that
    share it together. `reference` are the texts for the mode mean (the task's own by default),
    `seed` chooses donors for the mode resample.

    With a `journal` every finished unit is on the disk at once, under `name`: the same call goes
    on where the last one ended, another one is refused. Ctrl-C raises `SweepInterrupted` with
    what was done. With `fast=False` every intervention is a whole run. `announce` is told how
    long it will take, where everything must be run.
    """
    task = measured(task, metric)
    check_interventions(interventions, subject.heads)
    examples = encoded(task, subject, batch_size)
    shortest = min(range(len(examples.batches)), key=lambda n: _tokens(examples.batches[n]))
    with ExitStack() as stack:
        stack.enter_context(enough_memory(subject))
        stack.enter_context(at_rest(subject.model))
        stack.enter_context(torch.no_grad())
        instead = {
            mode: prepared(mode, subject, task, examples.batches, reference, seed)
            for mode in dict.fromkeys(one.mode for one in interventions)
        }
        trial = examples.batches[shortest], next(iter(instead.values()))(shortest)
        way, why = stack.enter_context(
            choose_way(subject, task, *trial, rows=batch_size, fast=fast)
        )
        ledger = Ledger(journal, name)
        if journal is not None:
            settings = {"batch_size": batch_size, "seed": seed, "way": way.name}
            about = fingerprint(subject, task, interventions, examples.batches, reference)
            ledger.begin(settings | about)
        job = Job(subject, task, interventions, examples, way, ledger, instead, why)
        return job.run(progress, announce)


def _tokens(batch: Batch) -> int:
    """How long the rows of a batch are."""
    return max((tensor.shape[-1] for tensor in batch.inputs.values()), default=0)
