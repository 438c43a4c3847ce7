"""Modes of ablation: what stands in the place of a head's output, prepared batch by batch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from headcount.errors import UsageError
from headcount.subject import Subject
from headcount.sweeps.exchange import Exchange
from headcount.sweeps.intervention import Mode
from headcount.tasks.custom import Custom
from headcount.tasks.task import Task
from headcount.text.batch import Batch
from headcount.wiring.ablate import Instead, zero
from headcount.wiring.donors import donors_of
from headcount.wiring.means import means_of
from headcount.wiring.uniform import check_uniform, uniform

__all__ = ["prepared"]


def prepared(
    mode: Mode,
    subject: Subject,
    task: Task,
    batches: Sequence[Batch],
    reference: Task | None,
    seed: int,
) -> Callable[[int], Instead]:
    """What stands in the place of heads, by the number of the batch that is run.

    Means are taken over the reference, or over the batches; donors come from the batches.
    """
    if mode == "zero":
        return lambda number: zero
    if mode == "uniform":
        check_uniform(subject)
        return lambda number: uniform
    if mode == "mean":
        means = means_of(subject, _reference(subject, task, batches, reference))
        return lambda number: means
    _check_donors(task)
    exchange = Exchange(batches, seed)
    return lambda number: donors_of(subject, batches[number], exchange.lent(number))


def _reference(
    subject: Subject, task: Task, batches: Sequence[Batch], reference: Task | None
) -> Iterable[Batch]:
    """The texts that means are taken over."""
    if isinstance(reference or task, Custom):
        raise UsageError(
            "The mode mean takes means over texts, and a custom task has none that headcount can "
            "encode; give reference=, another task with texts."
        )
    return batches if reference is None else reference.batches(subject)


def _check_donors(task: Task) -> None:
    """Donors lend position by position, so the model must run on known positions."""
    if isinstance(task, Custom) or task.generates:
        raise UsageError(
            "The mode resample needs runs whose positions are known: take metric='loss' of a task "
            f"with texts, not the {task.metric.name} of {task.name}."
        )
