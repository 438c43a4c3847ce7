"""Which way a sweep goes: the short one where it is sound, else the long one, with the reason."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from headcount.subject import Subject
from headcount.sweeps.verify import verify
from headcount.sweeps.ways import LongWay, ShortWay, SpokenWay
from headcount.tasks.custom import Custom
from headcount.tasks.task import Task
from headcount.text.batch import Batch
from headcount.wiring.ablate import Instead
from headcount.wiring.course import NoShortcut, course_of
from headcount.wiring.shortcut import Shortcut

__all__ = ["Chosen", "choose_way"]

#: The way, and why it is not the short one.
Chosen = tuple[LongWay, list[str]]


@contextmanager
def choose_way(
    subject: Subject, task: Task, trial: Batch, instead: Instead, *, rows: int, fast: bool
) -> Iterator[Chosen]:
    """Within the block the way is open; a batch to try it on must be given, and its stand-in.

    Where a model speaks step by step, or a task runs the model itself, everything is run.
    """
    way, notes = _way(subject, task, trial, instead, rows, fast)
    with way.opened():
        yield way, notes


def _way(
    subject: Subject, task: Task, trial: Batch, instead: Instead, rows: int, fast: bool
) -> Chosen:
    if not fast or isinstance(task, Custom):
        return LongWay(subject, task, rows), []
    if task.generates:
        return SpokenWay(subject, task, rows), []
    short, why = _tried(subject, task, trial, instead, rows)
    if short is not None:
        return short, []
    note = f"Every ablation ran the whole of {subject.name}: {why}."
    return LongWay(subject, task, rows), [note]


def _tried(
    subject: Subject, task: Task, trial: Batch, instead: Instead, rows: int
) -> tuple[ShortWay | None, str]:
    """The short way, where it gives what the long way gives; else why it does not."""
    try:
        course = course_of(subject, trial)
        shortcut = Shortcut(subject, course)
        with shortcut.opened():
            verify(subject, task, trial, course, shortcut, instead)
    except NoShortcut as why:
        return None, str(why)
    except Exception as error:  # whatever a family's own code says to rows that it did not expect
        told = str(error).splitlines()[0] if str(error) else "no message"
        return None, f"cut short it breaks ({type(error).__name__}: {told})"
    return ShortWay(subject, task, rows, course, shortcut), ""
