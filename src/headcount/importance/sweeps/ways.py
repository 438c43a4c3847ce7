"""Two ways to run a task with heads ablated: everything anew, or only what changes.

Both work on one batch at a time and give what the metric counts, `[intervention, row, column]`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import islice
from traceback import walk_tb
from typing import Any

import numpy as np
import torch
from torch import Tensor

from headcount import wiring
from headcount.errors import HeadcountError, ModelError, UsageError
from headcount.importance.sweeps.interventions import (
    ExampleRows,
    Exchange,
    Intervention,
    Mode,
    picked,
    repeat_batch,
)
from headcount.models import Site, Subject, core_of, out_of_memory, switched
from headcount.records import LocalEngine, Piece
from headcount.stats import Floats
from headcount.tasks import Custom, Task
from headcount.text import Batch

# --- The short way is taken only where it gives what the long way gives -------------------------

#: The largest difference, as a share of the largest answer.
TOLERANCE = {torch.float64: 1e-9, torch.float32: 5e-5}
#: In half precision, so many times the difference between two ways to attend that the model has
#: itself, which grows with its depth; at least so much.
NOISE, HALF = 3, 3e-2


def verify(
    subject: Subject,
    task: Task,
    batch: Batch,
    course: wiring.Course,
    shortcut: wiring.Shortcut,
    instead: wiring.Instead,
) -> None:
    """Raise `NoShortcut` unless both ways agree on a batch, at the ends of every stack.

    Two ablations share a forward; what the whole run kept must stay untouched by it.
    """
    whole = shortcut.whole(lambda: task.answer(subject, batch), instead)
    room = TOLERANCE.get(whole.dtype) or max(HALF, NOISE * _noise(subject, task, batch, whole))
    for site in _ends(course):
        chosen = torch.zeros(2, len(subject.heads), dtype=torch.bool)
        span = subject.anatomy.spans[site]
        chosen[0, span.start] = chosen[1, span.stop - 1] = True
        both = shortcut.again(lambda: task.answer(subject, repeat_batch(batch, 2)), site, chosen)
        for place, one in enumerate(chosen):
            with wiring.ablated(subject, one, instead):
                single = task.answer(subject, batch)
            _compare(both.unflatten(0, (2, -1))[place], single, whole, site, room)
    if not shortcut.intact:
        raise wiring.NoShortcut("it changes in place what its layers gave")


def _ends(course: wiring.Course) -> list[Site]:
    """The first and the last site of each stack."""
    stacks: dict[str, list[Site]] = {}
    for site in course.passages:
        stacks.setdefault(site.stack, []).append(site)
    return [site for sites in stacks.values() for site in dict.fromkeys((sites[0], sites[-1]))]


def _noise(subject: Subject, task: Task, batch: Batch, whole: Tensor) -> float:
    """How far apart the model's answers are where it attends by itself and by the plain formula."""
    if subject.anatomy.sites[0].route != "interface":
        return 0.0
    with switched(core_of(subject.model), lambda _: "eager"):
        plain = task.answer(subject, batch)
    return float((plain - whole).abs().max()) / max(1.0, float(whole.abs().max()))


def _compare(short: Tensor, long: Tensor, whole: Tensor, site: Site, room: float) -> None:
    gap = (short - long).abs().max()
    if not gap <= room * max(1.0, float(whole.abs().max())):
        raise wiring.NoShortcut(
            f"at {site.stack}.{site.layer} the short way differs from the long one by {gap:.2g}"
        )


# --- Two ways to run a task with heads ablated --------------------------------------------------


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
        chosen = _chosen(group.members, self.subject)
        copies = repeat_batch(batch, len(chosen))
        by_row = chosen[0]
        if len(chosen) > 1:
            rows = len(next(iter(copies.inputs.values())))
            by_row = chosen.repeat_interleave(rows // len(chosen), dim=0)
        with wiring.ablated(self.subject, by_row, instead):
            return marked(self.task, self.subject, copies, len(chosen), group.members)


#: Tokens that a forward on a GPU has at least, all ablations together, where memory has the room.
TOKENS = 4096


class ShortWay(LongWay):
    """Only what comes after the first ablated head runs again; see `wiring.shortcut`."""

    name = "short"

    def __init__(
        self,
        subject: Subject,
        task: Task,
        rows: int,
        course: wiring.Course,
        shortcut: wiring.Shortcut,
    ) -> None:
        super().__init__(subject, task, rows)
        self._course = course
        self._shortcut = shortcut

    def groups(self, interventions: Sequence[Intervention], batch: Batch) -> list[Group]:
        """By the first site that they touch."""
        by_site: dict[Site, list[Intervention]] = {}
        for one in interventions:
            sites = [self.subject.anatomy.site(head.stack, head.layer) for head in one.heads]
            by_site.setdefault(min(sites, key=self._course.order.__getitem__), []).append(one)
        return [
            Group(f"{site.stack}.{site.layer}", tuple(members), site)
            for site, members in by_site.items()
        ]

    def whole(self, batch: Batch, instead: wiring.Instead) -> Floats:
        """One plain evaluation, of which everything is kept that the others need."""
        return self._shortcut.whole(partial(super().whole, batch, instead), instead)

    def prepare(self, batch: Batch, instead: wiring.Instead) -> None:
        """The same for another stand-in."""
        self.whole(batch, instead)

    def opened(self) -> AbstractContextManager[Any]:
        """Within the block the model can be cut short."""
        return self._shortcut.opened()

    def without(self, group: Group, batch: Batch, instead: wiring.Instead) -> Floats:
        """As many forwards from the site on as it takes."""
        assert group.site is not None
        size = self._at_once(batch)
        return np.concatenate(
            [
                self._some(group.members[start : start + size], batch, group.site)
                for start in range(0, len(group.members), size)
            ]
        )

    def _at_once(self, batch: Batch) -> int:
        """How many share a forward: by examples, or on a GPU by tokens, where those allow more."""
        size, device = self._rows // len(batch), self.subject.device
        if device.type == "cuda":
            words = getattr(self.subject.inner.config.get_text_config(), "vocab_size", 1)
            room = torch.cuda.mem_get_info(device)[0] // (16 * words)  # of logits, a few times
            tokens = max(part.numel() for part in batch.inputs.values())
            size = max(size, min(TOKENS, room) // tokens)
        return max(1, size)

    def _some(self, members: tuple[Intervention, ...], batch: Batch, site: Site) -> Floats:
        copies = repeat_batch(batch, len(members))

        def run() -> Floats:
            return marked(self.task, self.subject, copies, len(members), members)

        return self._shortcut.again(run, site, _chosen(members, self.subject))


class GeneratingWay(LongWay):
    """For models that generate: whole runs, but for the encoder where it is untouched."""

    name = "spoken"  # as journals have it

    def __init__(self, subject: Subject, task: Task, rows: int) -> None:
        super().__init__(subject, task, rows)
        self._encoder = wiring.EncoderOnce(subject)

    def groups(self, interventions: Sequence[Intervention], batch: Batch) -> list[Group]:
        """Those that touch the encoder and those that do not, apart."""
        touching = [one for one in interventions if _touches_encoder(one)]
        others = [one for one in interventions if not _touches_encoder(one)]
        return [*super().groups(touching, batch), *super().groups(others, batch)]

    def whole(self, batch: Batch, instead: wiring.Instead) -> Floats:
        """One plain evaluation, after the encoder has run."""
        self.prepare(batch, instead)
        return self._encoder.reuse(partial(super().whole, batch, instead), copies=1)

    def prepare(self, batch: Batch, instead: wiring.Instead) -> None:
        """Run the encoder; what it gives is the same for every stand-in."""
        self._encoder.read(batch.to(self.subject.device).inputs)

    def without(self, group: Group, batch: Batch, instead: wiring.Instead) -> Floats:
        """Whole runs, or runs of the decoder alone."""
        if _touches_encoder(group.members[0]):
            return super().without(group, batch, instead)
        run = partial(super().without, group, batch, instead)
        return self._encoder.reuse(run, copies=len(group.members))

    def opened(self) -> AbstractContextManager[Any]:
        """Within the block the encoder's output is at hand."""
        return self._encoder.opened()


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


def _chosen(members: Sequence[Intervention], subject: Subject) -> Tensor:
    """True for every head that an intervention ablates, `[intervention, head]`."""
    return torch.stack([wiring.chosen_heads(one.heads, subject.heads) for one in members])


def _touches_encoder(one: Intervention) -> bool:
    return any(head.stack == "enc" for head in one.heads)


# --- Which way a sweep goes ---------------------------------------------------------------------


def choose_way(
    subject: Subject, task: Task, trials: Iterable[Trial], *, rows: int, fast: bool
) -> tuple[LongWay, list[str]]:
    """The way, and a note why it is not the short one; it is tried on the first trial that runs.

    Where a model generates token by token, or a task runs the model itself, everything is run.
    """
    if not fast or isinstance(task, Custom):
        return LongWay(subject, task, rows), []
    if task.generates:
        return GeneratingWay(subject, task, rows), []
    trial, instead = _one_that_runs(subject, task, trials)
    try:
        course = wiring.course_of(subject, trial)
        shortcut = wiring.Shortcut(subject, course)
        with shortcut.opened():
            verify(subject, task, trial, course, shortcut, instead)
        return ShortWay(subject, task, rows, course, shortcut), []
    except wiring.NoShortcut as error:
        why = str(error)
    except UNEXPECTED_ROWS as error:
        if not _is_of_the_model(error):
            raise
        told = str(error).splitlines()[0] if str(error) else "no message"
        why = f"cut short it breaks ({type(error).__name__}: {told})"
    return LongWay(subject, task, rows), [f"Every ablation ran the whole of {subject.name}: {why}."]


#: A few rows, and what makes their stand-in.
Trial = tuple[Batch, Callable[[], wiring.Instead]]
#: So many trials may break the model before it is not theirs.
_TRIALS = 8


def _one_that_runs(
    subject: Subject, task: Task, trials: Iterable[Trial]
) -> tuple[Batch, wiring.Instead]:
    """A trial without an example that the model breaks on: such are set aside later."""
    broken: Exception | None = None
    for trial, make in islice(trials, _TRIALS):
        try:
            instead = make()
            task.answer(subject, trial)
        except HeadcountError:
            raise
        except Exception as error:
            broken = error
        else:
            return trial, instead
    raise broken or ModelError(f"{task.name} has no batch to try {subject.name} on.")


#: What a family's code may raise when it gets other rows than in a run of its own: torch says
#: RuntimeError of sizes that do not fit, transformers ValueError; code that unpacks, indexes or
#: asserts says the others. HeadcountError is our own word for rows that cannot be told apart.
UNEXPECTED_ROWS = (
    RuntimeError,
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    AssertionError,
    HeadcountError,
)


def _is_of_the_model(error: Exception) -> bool:
    """Whether a model is to blame, and not a slip in headcount's own lines, or too little memory.

    Sizes that do not fit come from the model also where torch notices it in a line of ours.
    """
    if isinstance(error, RuntimeError | HeadcountError):
        return not out_of_memory(error)
    *_, (frame, _) = walk_tb(error.__traceback__)
    return not frame.f_globals["__name__"].startswith("headcount.")


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
    """What stands in the place of heads, by the batch that is run.

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
