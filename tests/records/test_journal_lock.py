from __future__ import annotations

import errno
import gc
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from headcount.errors import RunError
from headcount.records.journal import LOCK_FILE, Lock

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such locks")

HOLDER = """
import sys, time
from headcount.records.journal import Lock
lock = Lock(sys.argv[1])
lock.acquire()
print("locked", flush=True)
time.sleep(60)
"""


@contextmanager
def holder(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the folder's lock until it is killed."""
    command = [sys.executable, "-c", HOLDER, str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "locked\n"
            yield process
        finally:
            process.kill()


def test_a_second_process_is_refused_and_told_who_has_it(tmp_path: Path) -> None:
    with holder(tmp_path) as other:
        message = f"{tmp_path}/ is being written by process {other.pid}; wait until it has ended"
        with pytest.raises(RunError) as caught:
            Lock(tmp_path).acquire()
        assert str(caught.value).startswith(message)
        assert (tmp_path / LOCK_FILE).exists()


def test_a_killed_process_holds_nothing(tmp_path: Path) -> None:
    with holder(tmp_path) as other:
        other.send_signal(signal.SIGKILL)
        other.wait()
        assert (tmp_path / LOCK_FILE).exists(), "the file is stale, and does not matter"
        lock = Lock(tmp_path)
        assert lock.acquire()
        assert (tmp_path / LOCK_FILE).read_text() == str(os.getpid())
        lock.release()
    assert not (tmp_path / LOCK_FILE).exists()


def test_one_process_may_hold_it_twice_and_the_last_one_lets_go(tmp_path: Path) -> None:
    one, two = Lock(tmp_path), Lock(tmp_path)
    assert one.acquire()
    assert not two.acquire()
    assert not two.acquire(), "asking again changes nothing"
    two.release()
    assert (tmp_path / LOCK_FILE).exists()
    one.release()
    one.release()
    assert not (tmp_path / LOCK_FILE).exists()


def test_a_forgotten_lock_lets_go(tmp_path: Path) -> None:
    lock = Lock(tmp_path)
    lock.acquire()
    del lock
    gc.collect()
    assert not (tmp_path / LOCK_FILE).exists()


def test_a_forked_child_cannot_let_go_of_its_parents_lock(tmp_path: Path) -> None:
    lock = Lock(tmp_path)
    lock.acquire()
    child = os.fork()
    if child == 0:
        try:
            lock.release()
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert (tmp_path / LOCK_FILE).exists()
    message = f"is being written by process {os.getpid()}; wait"
    assert (
        message
        in subprocess.run(
            [sys.executable, "-c", HOLDER, str(tmp_path)], capture_output=True, text=True
        ).stderr
    )
    lock.release()


def test_a_file_system_without_locks_keeps_nobody_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr("fcntl.flock", refuse)
    lock = Lock(tmp_path)
    assert lock.acquire()
    lock.release()


def test_a_folder_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(RunError, match=r"/ cannot be written to: permission denied\. Choose"):
        Lock(tmp_path).acquire()
