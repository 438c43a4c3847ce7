"""The short way is taken only where it gives what the long way gives, seen on this very model."""

from __future__ import annotations

import torch
from torch import Tensor

from headcount.models.site import Site
from headcount.subject import Subject
from headcount.sweeps.rows import picked, repeated
from headcount.tasks.task import Task
from headcount.text.batch import Batch
from headcount.wiring.ablate import Instead, ablated
from headcount.wiring.course import Course, NoShortcut
from headcount.wiring.shortcut import Shortcut

__all__ = ["TOLERANCE", "verify"]

#: The largest difference, as a share of the largest answer.
TOLERANCE = {torch.float64: 1e-9, torch.float32: 5e-5}
HALF = 3e-2


def verify(
    subject: Subject, task: Task, batch: Batch, course: Course, shortcut: Shortcut, instead: Instead
) -> None:
    """Raise `NoShortcut` unless both ways agree on two examples, at the ends of every stack.

    Two ablations share a forward; what the whole run kept must stay untouched by it.
    """
    few = picked(batch, range(min(2, len(batch))))
    whole = shortcut.whole(lambda: task.answer(subject, few), instead)
    for site in _ends(course):
        chosen = torch.zeros(2, len(subject.heads), dtype=torch.bool)
        span = subject.anatomy.spans[site]
        chosen[0, span.start] = chosen[1, span.stop - 1] = True
        both = shortcut.again(lambda: task.answer(subject, repeated(few, 2)), site, chosen)
        for place, one in enumerate(chosen):
            with ablated(subject, one, instead):
                alone = task.answer(subject, few)
            _compare(both.chunk(2)[place], alone, whole, site)
    if not shortcut.intact:
        raise NoShortcut("it changes in place what its layers gave")


def _ends(course: Course) -> list[Site]:
    """The first and the last site of each stack."""
    stacks: dict[str, list[Site]] = {}
    for site in course.passages:
        stacks.setdefault(site.stack, []).append(site)
    return [site for sites in stacks.values() for site in dict.fromkeys((sites[0], sites[-1]))]


def _compare(short: Tensor, long: Tensor, whole: Tensor, site: Site) -> None:
    gap = (short - long).abs().max()
    room = TOLERANCE.get(long.dtype, HALF) * max(1.0, float(whole.abs().max()))
    if not gap <= room:
        raise NoShortcut(
            f"at {site.stack}.{site.layer} the short way differs from the long one by {gap:.2g}"
        )
