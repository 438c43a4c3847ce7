"""Ways of a sweep that run only what changes: from the first ablated head on, or past the encoder.

The short way is taken only where it gives what the long way gives.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from itertools import islice
from traceback import walk_tb
from typing import Any

import numpy as np
import torch
from torch import Tensor

from headcount import wiring
from headcount.errors import HeadcountError, ModelError
from headcount.importance import (
    Group,
    Intervention,
    LongWay,
    Trial,
    chosen_by,
    marked,
    repeat_batch,
)
from headcount.models import Site, Subject, core_of, out_of_memory, switched
from headcount.rooms.shortcut.shortcut import Course, EncoderOnce, NoShortcut, Shortcut, course_of
from headcount.stats import Floats
from headcount.tasks import Task
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
    course: Course,
    shortcut: Shortcut,
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
        raise NoShortcut("it changes in place what its layers gave")


def _ends(course: Course) -> list[Site]:
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
        raise NoShortcut(
            f"at {site.stack}.{site.layer} the short way differs from the long one by {gap:.2g}"
        )


# --- The ways -----------------------------------------------------------------------------------


#: Tokens that a forward on a GPU has at least, all ablations together, where memory has the room.
TOKENS = 4096


class ShortWay(LongWay):
    """Only what comes after the first ablated head runs again; see `shortcut`."""

    name = "short"
    keeps = True

    def __init__(
        self,
        subject: Subject,
        task: Task,
        rows: int,
        course: Course,
        shortcut: Shortcut,
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

        return self._shortcut.again(run, site, chosen_by(members, self.subject))


class GeneratingWay(LongWay):
    """For models that generate: whole runs, but for the encoder where it is untouched."""

    name = "spoken"  # as journals have it

    def __init__(self, subject: Subject, task: Task, rows: int) -> None:
        super().__init__(subject, task, rows)
        self._encoder = EncoderOnce(subject)

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


def _touches_encoder(one: Intervention) -> bool:
    return any(head.stack == "enc" for head in one.heads)


# --- Which of them a sweep takes ----------------------------------------------------------------

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


def short_way(
    subject: Subject, task: Task, trials: Iterable[Trial], rows: int
) -> tuple[LongWay | None, str]:
    """The way, tried on the first trial that runs; or none, and why."""
    if task.generates:
        return GeneratingWay(subject, task, rows), ""
    trial, instead = _one_that_runs(subject, task, trials)
    try:
        course = course_of(subject, trial)
        shortcut = Shortcut(subject, course)
        with shortcut.opened():
            verify(subject, task, trial, course, shortcut, instead)
        return ShortWay(subject, task, rows, course, shortcut), ""
    except NoShortcut as error:
        why = str(error)
    except UNEXPECTED_ROWS as error:
        if not _is_of_the_model(error):
            raise
        told = str(error).splitlines()[0] if str(error) else "no message"
        why = f"cut short it breaks ({type(error).__name__}: {told})"
    return None, why
