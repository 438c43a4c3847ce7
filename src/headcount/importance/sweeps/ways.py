"""How a task is run with heads ablated: everything anew, or, by a room, only what changes.

A way works on one batch at a time and gives what the metric counts, `[intervention, row, column]`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from headcount import plugins, wiring
from headcount.errors import ModelError, UsageError
from headcount.importance.sweeps.interventions import (
    ExampleRows,
    Exchange,
    Intervention,
    Mode,
    picked,
    repeat_batch,
)
from headcount.models import Site, Subject
from headcount.records import LocalEngine, Piece
from headcount.stats import Floats
from headcount.tasks import Custom, Task
from headcount.text import Batch

# --- A way to run a task with heads ablated -----------------------------------------------------


@dataclass(frozen=True)
class Group:
    """Interventions that are run on a batch in one go, and journaled together."""

    name: str
    members: tuple[Intervention, ...]
    #: The first site that any of them touches, where that matters.
    site: Site | None = None


class LongWay:
    """Every ablation is a whole run; small batches are shared by several."""

    name = "long"
    #: Whether a run gives what later ones need, so that wholes and ablations go together.
    keeps = False

    def __init__(self, subject: Subject, task: Task, rows: int) -> None:
        self.subject = subject
        self.task = task
        #: How many examples a forward may have, all ablations together.
        self._rows = rows

    def groups(self, interventions: Sequence[Intervention], batch: Batch) -> list[Group]:
        """As many as fit into one run; a task of the caller's own runs the model itself."""
        size = 1 if isinstance(self.task, Custom) else max(1, self._rows // len(batch))
        return [
            Group(interventions[start].name, tuple(interventions[start : start + size]))
            for start in range(0, len(interventions), size)
        ]

    def whole(self, batch: Batch, instead: wiring.Instead) -> Floats:
        """One plain evaluation."""
        return marked(self.task, self.subject, batch, 1)[0]

    def prepare(self, batch: Batch, instead: wiring.Instead) -> None:
        """Nothing is needed for a run of its own."""

    def opened(self) -> AbstractContextManager[Any]:
        """Nothing hangs on the model between runs."""
        return nullcontext()

    def without(self, group: Group, batch: Batch, instead: wiring.Instead) -> Floats:
        """One evaluation of as many copies of the batch as there are ablations."""
        chosen = chosen_by(group.members, self.subject)
        copies = repeat_batch(batch, len(chosen))
        by_row = chosen[0]
        if len(chosen) > 1:
            rows = len(next(iter(copies.inputs.values())))
            by_row = chosen.repeat_interleave(rows // len(chosen), dim=0)
        with wiring.ablated(self.subject, by_row, instead):
            return marked(self.task, self.subject, copies, len(chosen), group.members)


def marked(
    task: Task, subject: Subject, batch: Batch, copies: int, members: Sequence[Intervention] = ()
) -> Floats:
    """What the metric counts in the model's answers, `[copy, row, column]`."""
    marks = task.mark(task.answer(subject, batch), batch)
    try:
        task.check_numbers(marks, batch, subject)
    except ModelError as error:
        if not members:
            raise
        names = ", ".join(one.name for one in members)
        raise ModelError(f"With heads ablated ({names}): {error}") from error
    return marks.statistics.reshape(copies, -1, marks.statistics.shape[1])


def chosen_by(members: Sequence[Intervention], subject: Subject) -> Tensor:
    """True for every head that an intervention ablates, `[intervention, head]`."""
    return torch.stack([wiring.chosen_heads(one.heads, subject.heads) for one in members])


# --- Which way a sweep goes ---------------------------------------------------------------------


def choose_way(
    subject: Subject, task: Task, trials: Iterable[Trial], *, rows: int, fast: bool
) -> tuple[LongWay, list[str]]:
    """The way, and a note why it is not the short one; it is tried on the first trial that runs.

    Where a model generates token by token, or a task runs the model itself, everything is run.
    """
    short = plugins.part("short way")
    if not fast or isinstance(task, Custom) or short is None:
        return LongWay(subject, task, rows), []
    way, why = short(subject, task, trials, rows)
    note = f"Every ablation ran the whole of {subject.name}: {why}."
    return (way, []) if way is not None else (LongWay(subject, task, rows), [note])


#: A few rows, and what makes their stand-in.
Trial = tuple[Batch, Callable[[], wiring.Instead]]
# --- Modes of ablation --------------------------------------------------------------------------

#: What stands in the place of heads: given a batch's number, some of its rows, and these alone.
StandIn = Callable[[int, Sequence[int], Batch], wiring.Instead]


def prepared(
    mode: Mode,
    subject: Subject,
    task: Task,
    batches: Sequence[Batch],
    reference: Task | None,
    seed: int,
    notes: list[str],
) -> StandIn:
    """What replaces heads, for each batch.

    Means are taken over the reference, or over the batches; donors come from the batches. What
    a reader should know goes to the notes.
    """
    if mode == "zero":
        return lambda *_: wiring.zero
    if mode == "uniform":
        wiring.check_uniform(subject)
        return lambda *_: wiring.uniform
    if mode == "mean":
        if isinstance(reference or task, Custom):
            raise UsageError(
                "The mode mean takes means over texts, and a custom task has none that headcount "
                "can encode; give reference=, another task with texts."
            )
        texts = batches if reference is None else reference.batches(subject)
        lost: dict[int, str] = {}
        means = wiring.means_of(subject, texts, partial(_of_those_that_run, lost))
        if reference is not None:  # the task's own are named where the sweep sets them aside
            name = reference.name
            notes += [f"Example {at + 1} of {name} is in no mean: {lost[at]}" for at in lost]
        return lambda *_: means
    if isinstance(task, Custom) or task.generates:  # donors lend position by position
        raise UsageError(
            "The mode resample needs runs whose positions are known: take metric='loss' of a task "
            f"with texts, not the {task.metric.name} of {task.name}."
        )
    exchange = Exchange(batches, seed)
    return lambda number, rows, batch: wiring.donors_of(subject, batch, exchange.lent(number, rows))


def _of_those_that_run(
    lost: dict[int, str], see: Callable[[Batch], Any], batches: Iterable[Batch]
) -> Iterator[Any]:
    """What is seen of all examples but those that the model breaks on, which are named."""
    given: dict[int, Batch] = {}

    def pieces() -> Iterator[Piece]:
        for number, batch in enumerate(batches):
            given[number] = batch
            yield Piece(number, ExampleRows(batch, range(len(batch))))

    def work(some: Any) -> Any:
        return see(picked(some.of, some.rows))

    for answer in LocalEngine().run(lambda: nullcontext(work), pieces()):
        batch = given.pop(answer.number)
        lost.update((batch.index[one.place], one.why) for one in answer.lost)
        yield from (result for _, _, result in answer.results)
