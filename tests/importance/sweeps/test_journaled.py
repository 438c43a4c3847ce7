"""Nothing is lost: killed, interrupted, out of room or cut off in mid-line, a sweep goes on."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_subjects
import torch
from small_tasks import KINDS, TEXTS

from headcount import tasks
from headcount.errors import RunError
from headcount.importance.sweeps.interventions import single_heads
from headcount.importance.sweeps.sweeping import Sweep, SweepInterrupted, sweep
from headcount.models.subject import Subject
from headcount.records import journal as journal_module
from headcount.records.journal import Journal
from headcount.records.watching import Progress, progress
from headcount.tasks.task import Task

FINGERPRINT = {"what": "a test"}


def swept(
    path: Path | None,
    subject: Subject,
    task: Task,
    shown: Progress | None = None,
    **options: Any,
) -> Sweep:
    heads = single_heads(subject.anatomy, options.pop("mode", "zero"))[:: options.pop("every", 1)]
    options = {"batch_size": 2} | options
    with progress(shown or False):
        if path is None:
            return sweep(subject, task, heads, **options)
        with Journal.open(path, FINGERPRINT) as journal:
            return sweep(subject, task, heads, journal=journal, **options)


class Watcher:
    """Progress that does something with every part that is done."""

    def __init__(self, seen: Callable[[int], object]) -> None:
        self.seen, self.parts = seen, 0

    def start(self, total: int, title: str) -> None:
        pass

    def advance(self, n: int = 1) -> None:
        self.parts += n
        self.seen(self.parts)

    def done(self) -> None:
        pass


def assert_identical(one: Sweep, other: Sweep) -> None:
    for mine, yours in zip(
        (one.baseline, *one.outcomes), (other.baseline, *other.outcomes), strict=True
    ):
        assert np.array_equal(mine.statistics, yours.statistics)
    assert one.costs() == other.costs()


def units(path: Path) -> int:
    return path.read_bytes().count(b"\n") - 2 if path.exists() else 0  # header and settings


# --- a process that is really killed --------------------------------------------------------------


def big_task() -> tuple[Subject, Task]:
    """Twenty texts, for a model whose small tokenizer is the same in every process."""
    texts = [f"{text} {place}" for place in range(4) for text in TEXTS]
    return tiny_subjects.writer("gpt2"), tasks.lm(texts)


def test_a_killed_process_goes_on_and_ends_with_the_same(tmp_path: Path) -> None:
    """SIGKILL in the middle; what was done is not run again, and nothing is lost."""
    path = tmp_path / "journal.jsonl"
    kill_after(path, 9)
    assert units(path) >= 9
    subject, task = big_task()
    ran: list[int] = []
    hook = subject.model.register_forward_hook(lambda *_: ran.append(1))
    resumed = swept(path, subject, task)
    forwards = len(ran)
    ran.clear()
    unbroken = swept(None, subject, task)
    assert forwards < len(ran)
    hook.remove()
    assert_identical(resumed, unbroken)
    again = swept(path, subject, task)
    assert_identical(again, unbroken)


def kill_after(path: Path, least: int) -> None:
    """Begin, or go on, in another process, and kill it once so many units are on the disk."""
    code = (
        "import sys, time\n"
        f"sys.path[:0] = {[str(Path(__file__).parent), str(Path(__file__).parents[2])]!r}\n"
        f"import torch; torch.set_num_threads({torch.get_num_threads()})\n"
        "from pathlib import Path\n"
        "from test_journaled import Watcher, big_task, swept\n"
        f"swept(Path({str(path)!r}), *big_task(), Watcher(lambda done: time.sleep(0.02)))\n"
    )
    child = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True)
    begun = time.monotonic()
    while units(path) < least and child.poll() is None and time.monotonic() - begun < 120:
        time.sleep(0.01)
    assert child.poll() is None, child.stderr.read() if child.stderr else ""
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    assert child.stderr is not None
    child.stderr.close()


# --- broken off in every other way ----------------------------------------------------------------


def break_off(after: int, error: BaseException) -> Progress:
    def seen(done: int) -> None:
        if done >= after:
            raise error

    return Watcher(seen)


@pytest.mark.parametrize(
    ("which", "mode"),
    [("classification", "mean"), ("windows", "resample"), ("translation", "zero")],
)
def test_a_sweep_goes_on_where_it_ended(tmp_path: Path, which: str, mode: str) -> None:
    subject, task = KINDS[which]()
    path = tmp_path / "journal.jsonl"
    for after in (1, 12, 30):
        with pytest.raises(ZeroDivisionError):
            swept(path, subject, task, break_off(after, ZeroDivisionError()), mode=mode)
    assert_identical(swept(path, subject, task, mode=mode), swept(None, subject, task, mode=mode))


def test_translations_go_on_too(tmp_path: Path) -> None:
    subject, task = KINDS["translation"]()
    path = tmp_path / "journal.jsonl"
    few: dict[str, Any] = {"metric": "task", "every": 6}
    with pytest.raises(ZeroDivisionError):
        swept(path, subject, task, break_off(10, ZeroDivisionError()), **few)
    assert units(path) > 1
    assert_identical(swept(path, subject, task, **few), swept(None, subject, task, **few))


def test_ctrl_c_leaves_what_was_done(tmp_path: Path) -> None:
    subject, task = big_task()
    whole = swept(None, subject, task)
    each = len(subject.heads) + 1
    with pytest.raises(SweepInterrupted) as stop:
        swept(tmp_path / "journal.jsonl", subject, task, break_off(5 * each, KeyboardInterrupt()))
    part = stop.value.sweep
    assert isinstance(stop.value, KeyboardInterrupt)
    assert not part.complete
    assert part.examples == len(task)
    assert 0 < len(part.baseline) < len(task)
    numbers = [task.examples.index(example) for example in part.task.examples]
    for mine, all_ in zip(part.outcomes, whole.outcomes, strict=True):
        assert np.array_equal(mine.statistics, all_.statistics[numbers])
    assert len(part.costs()) == len(subject.heads)
    assert_identical(swept(tmp_path / "journal.jsonl", subject, task), whole)


def test_ctrl_c_before_anything_was_done_is_just_that() -> None:
    subject, task = big_task()
    with pytest.raises(KeyboardInterrupt) as stop:
        swept(None, subject, task, break_off(1, KeyboardInterrupt()))
    assert not isinstance(stop.value, SweepInterrupted)


def test_what_is_done_when_broken_off_is_not_the_longest() -> None:
    """Tasks sort by length; a sweep mixes its batches, always alike."""
    subject, task = big_task()
    with pytest.raises(SweepInterrupted) as stop:
        swept(None, subject, task, break_off(100, KeyboardInterrupt()))
    lengths = sorted(len(example.text) for example in task.examples)
    done = [len(example.text) for example in stop.value.sweep.task.examples]
    assert min(done) < np.median(lengths)


def test_a_line_cut_off_in_the_middle_is_run_again(tmp_path: Path) -> None:
    subject, task = big_task()
    path = tmp_path / "journal.jsonl"
    whole = swept(path, subject, task)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:7]) + lines[7][: len(lines[7]) // 2])
    assert_identical(swept(path, subject, task), whole)
    assert units(path) == len(lines) - 2


def test_a_full_disk_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    subject, task = big_task()
    path = tmp_path / "journal.jsonl"
    own, left = journal_module.write_all, [6]

    def write(descriptor: int, data: bytes) -> None:
        left[0] -= 1
        if left[0] < 0:
            own(descriptor, data[: len(data) // 2])
            raise OSError(errno.ENOSPC, "No space left on device")
        own(descriptor, data)

    with monkeypatch.context() as full:
        full.setattr(journal_module, "write_all", write)
        message = r"could not be added to .*: the disk is full.*\(5 so far\); free some room"
        with pytest.raises(RunError, match=message):
            swept(path, subject, task)
    assert_identical(swept(path, subject, task), swept(None, subject, task))


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"batch_size": 3}, "batch_size = 2, and now batch_size = 3"),
        ({"mode": "uniform"}, 'mode = "zero", and now mode = "uniform"'),
        ({"metric": "task"}, 'task metric = "loss", and now task metric = "f1"'),
        ({"seed": 1}, "seed = 0, and now seed = 1"),
        ({"fast": False}, 'way = "short", and now way = "long"'),
    ],
)
def test_other_settings_are_refused_by_name(
    tmp_path: Path, change: dict[str, Any], named: str
) -> None:
    subject, task = KINDS["classification"]()
    path = tmp_path / "journal.jsonl"
    swept(path, subject, task)
    with pytest.raises(RunError, match=f"has units of 'sweep' with {named}; run it as before"):
        swept(path, subject, task, **change)


def test_other_models_and_other_data_are_refused_by_name(tmp_path: Path) -> None:
    subject, task = KINDS["classification"]()
    path = tmp_path / "journal.jsonl"
    swept(path, subject, task)
    other = tiny_subjects.classifier(seed=1)
    with pytest.raises(RunError, match=r'with weights = "[0-9a-f]{64}", and now weights ='):
        swept(path, other, task)
    with pytest.raises(RunError, match=r'with data = "[0-9a-f]{64}", and now data ='):
        swept(path, subject, task.part([1, 0, 2, 3, 4]))
    subject.model.config.max_position_embeddings = 5  # longer texts are cut there
    with pytest.raises(RunError, match=r'with tokens = "[0-9a-f]{64}", and now tokens ='):
        swept(path, subject, task)


def test_two_sweeps_share_a_journal_under_their_names(tmp_path: Path) -> None:
    subject, task = KINDS["classification"]()
    path = tmp_path / "journal.jsonl"
    first = swept(path, subject, task, name="first")
    other = swept(path, subject, task, name="second", metric="task")
    assert first.baseline.name == "loss"
    assert other.baseline.name == "f1"
    assert_identical(swept(path, subject, task, name="first"), first)
