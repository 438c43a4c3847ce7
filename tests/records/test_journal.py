from __future__ import annotations

import errno
import json
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headcount.errors import RunError, UsageError
from headcount.records.journal import Journal

PRINT = {"model": "sha256:ab", "seed": 0, "settings": {"by": "ablation", "batch_size": 8}}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.jsonl"


def write(path: Path, *units: str) -> None:
    sweep(PRINT, path, units)


def sweep(fingerprint: dict[str, Any], path: Path, units: Sequence[str]) -> None:
    """Do the units that are not done yet."""
    with Journal.open(path, fingerprint) as journal:
        for unit in units:
            if unit not in journal.done:
                journal.append(unit, {"loss": len(unit) / 3})


def test_finished_units_come_back_in_their_order(path: Path) -> None:
    write(path, "enc.0.1", "enc.0.0")
    write(path, "dec.0.0")
    with Journal.open(path, PRINT) as journal:
        assert list(journal.done) == ["enc.0.1", "enc.0.0", "dec.0.0"]
        assert journal.done["enc.0.0"] == {"loss": 7 / 3}
        assert journal.dropped == 0
        assert journal.fingerprint == PRINT


def test_every_line_is_strict_json_and_the_first_is_a_header(path: Path) -> None:
    write(path, "a")
    header, unit = (json.loads(line) for line in path.read_text().splitlines())
    assert header["kind"] == "headcount journal"
    assert header["schema"] == 1
    assert header["fingerprint"] == PRINT
    assert unit == {"unit": "a", "result": {"loss": 1 / 3}}


@settings(max_examples=40, deadline=None)
@given(st.lists(st.floats()))
def test_floats_come_back_to_the_bit(
    tmp_path_factory: pytest.TempPathFactory, values: list[float]
) -> None:
    path = tmp_path_factory.mktemp("floats") / "journal.jsonl"
    with Journal.open(path, PRINT) as journal:
        journal.append("list", values)
        journal.append("array", np.array(values, dtype=np.float64))
    with Journal.open(path, PRINT) as journal:
        assert list(map(repr, journal.done["list"])) == list(map(repr, values))
        assert list(map(repr, journal.done["array"])) == list(map(repr, values))
    path.unlink()


def test_unbroken_and_resumed_work_see_the_same_results(path: Path) -> None:
    with Journal.open(path, PRINT) as journal:
        journal.append("a", {"pair": (np.float32(0.1), np.int64(2)), "nan": math.nan})
        unbroken = repr(journal.done)
    with Journal.open(path, PRINT) as journal:
        assert repr(journal.done) == unbroken


def test_each_line_is_on_the_disk_before_append_returns(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    real = os.fsync
    with Journal.open(path, PRINT) as journal:
        monkeypatch.setattr(
            os, "fsync", lambda fd: (synced.append(os.fstat(fd).st_size), real(fd))[1]
        )
        journal.append("a", 1)
        assert synced == [path.stat().st_size]


# --- another sweep's journal ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seed": 1}, "was begun with seed = 0, and now seed = 1;"),
        (
            {"settings": {"by": "gradient", "batch_size": 8}},
            'was begun with settings.by = "ablation", and now settings.by = "gradient";',
        ),
        ({"more": True}, "was begun with more = nothing, and now more = true;"),
        ({"seed": False}, "was begun with seed = 0, and now seed = false;"),
    ],
)
def test_another_fingerprint_is_refused_by_its_first_difference(
    change: dict[str, Any], message: str, path: Path
) -> None:
    write(path, "a")
    before = path.read_bytes()
    with pytest.raises(RunError) as caught:
        Journal.open(path, {**PRINT, **change})
    assert message in str(caught.value)
    assert path.read_bytes() == before
    write(path, "b")  # the refused one let go of the file


def test_a_fingerprint_that_lost_a_key_is_another_one(path: Path) -> None:
    write(path, "a")
    with pytest.raises(RunError, match="seed = 0, and now seed = nothing"):
        Journal.open(path, {key: value for key, value in PRINT.items() if key != "seed"})


def test_nan_and_tuples_in_a_fingerprint_stay_equal(path: Path) -> None:
    for _ in range(2):
        Journal.open(path, {"threshold": math.nan, "layers": (1, 2), "none": {}}).close()


# --- damage ---------------------------------------------------------------------------------


def test_a_file_cut_anywhere_goes_on_and_ends_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)  # hundreds of files, none to keep
    units = ["enc.0.0", "enc.0.1", "ö"]
    sweep({"s": 0}, tmp_path / "whole.jsonl", units)
    whole = (tmp_path / "whole.jsonl").read_bytes()
    path = tmp_path / "cut.jsonl"
    for cut in range(len(whole)):
        path.write_bytes(whole[:cut])
        with Journal.open(path, {"s": 0}) as journal:
            lines = whole[:cut].count(b"\n")
            assert len(journal.done) == max(lines - 1, 0)
            in_a_unit = lines > 0 and whole[cut - 1 : cut] != b"\n"
            assert journal.dropped == int(in_a_unit)
        sweep({"s": 0}, path, units)
        assert path.read_bytes() == whole


def test_a_cut_line_stays_until_something_is_appended(path: Path) -> None:
    write(path, "a")
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"unit": "b", "res')
    Journal.open(path, PRINT).close()
    assert path.read_bytes() == whole + b'{"unit": "b", "res'


def test_a_cut_line_goes_wholly_also_when_the_next_one_is_shorter(path: Path) -> None:
    write(path, "a")
    path.write_bytes(path.read_bytes() + b'{"unit": "b", "result": "' + b"x" * 500)
    write(path, "c")
    with Journal.open(path, PRINT) as journal:
        assert list(journal.done) == ["a", "c"]
        assert journal.dropped == 0


@pytest.mark.parametrize(
    "damage",
    [
        b"\x00\x00\x00\n",
        b'{"unit": "b", "res\n',
        b"\xff\xfe\n",
        b"[1]\n",
        b'{"unit": 3, "result": 1}\n',
        b'{"unit": "c"}\n',
    ],
)
def test_a_damaged_line_in_the_middle_is_named(damage: bytes, path: Path) -> None:
    write(path, "a", "b")
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + lines[1] + damage + lines[2])
    with pytest.raises(
        RunError, match=r"journal\.jsonl is damaged in line 3: it is not a finished"
    ):
        Journal.open(path, PRINT)


def test_a_unit_that_is_there_twice_is_named(path: Path) -> None:
    write(path, "a")
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines, lines[1]]))
    with pytest.raises(RunError, match="damaged in line 3: 'a' is there twice"):
        Journal.open(path, PRINT)


@pytest.mark.parametrize("text", ["my notes", "my notes\n", '{"kind": "something else"}\n', "{\n"])
def test_a_file_that_is_no_journal_is_left_alone(text: str, path: Path) -> None:
    path.write_text(text)
    with pytest.raises(RunError, match=r"is not a journal of headcount: its first line"):
        Journal.open(path, PRINT)
    assert path.read_text() == text


def test_a_newer_journal_is_refused_by_name(path: Path) -> None:
    write(path, "a")
    path.write_text(path.read_text().replace('"schema": 1', '"schema": 2'))
    with pytest.raises(
        RunError, match=r"was written with schema 2; this headcount \S+ reads up to 1"
    ):
        Journal.open(path, PRINT)


def test_a_journal_of_another_version_is_not_gone_on_with(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(path, "enc.0.1")
    with monkeypatch.context() as patched:
        patched.setattr("headcount.records.journal.version", lambda: "99.0")
        with pytest.raises(
            RunError, match=r"was begun by headcount \S+, and this is 99.0: what two"
        ):
            Journal.open(path, PRINT)
    assert list(Journal.open(path, PRINT).done) == ["enc.0.1"]


def test_a_folder_in_its_place(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="cannot be written to: is a directory"):
        Journal.open(tmp_path, PRINT)


def test_a_missing_folder(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="cannot be written to: no such file"):
        Journal.open(tmp_path / "none" / "journal.jsonl", PRINT)


# --- wrong use ------------------------------------------------------------------------------


def test_a_unit_is_written_once(path: Path) -> None:
    with Journal.open(path, PRINT) as journal:
        journal.append("a", 1)
        with pytest.raises(UsageError, match="'a' is already in"):
            journal.append("a", 2)


def test_a_result_that_json_cannot_hold_leaves_the_file_alone(path: Path) -> None:
    with Journal.open(path, PRINT) as journal:
        before = path.read_bytes()
        with pytest.raises(UsageError, match=r"result\.x is of type object"):
            journal.append("a", {"x": object()})
        assert path.read_bytes() == before
        assert journal.done == {}


def test_a_closed_journal_can_be_read_and_not_written(path: Path) -> None:
    write(path, "a")
    journal = Journal.open(path, PRINT)
    journal.close()
    assert list(journal.done) == ["a"]
    with pytest.raises(UsageError, match="is closed, so 'b' cannot be added"):
        journal.append("b", 1)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such locks")
def test_two_writers_at_once_are_refused(path: Path) -> None:
    with (
        Journal.open(path, PRINT),
        pytest.raises(RunError, match="is open for writing already; wait"),
    ):
        Journal.open(path, PRINT)
    Journal.open(path, PRINT).close()


# --- disks that fill up, processes that die ---------------------------------------------------


def full(after: int) -> Any:
    """An os.write that takes some bytes and then finds the disk full."""
    real, room = os.write, [after]

    def write(descriptor: int, data: memoryview) -> int:
        if room[0] == 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        taken = real(descriptor, data[: room[0]])
        room[0] -= taken
        return taken

    return write


@pytest.mark.parametrize("after", [0, 1, 10])
def test_a_full_disk_leaves_the_last_whole_line(
    after: int, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Journal.open(path, PRINT) as journal:
        journal.append("a", 1)
        before = path.read_bytes()
        with monkeypatch.context() as patch:
            patch.setattr(os, "write", full(after))
            with pytest.raises(
                RunError,
                match=r"'b' could not be added to .*: the disk is full\. .* safe \(1 so far\)",
            ):
                journal.append("b", 2)
        assert path.read_bytes() == before
        assert journal.done == {"a": 1}
        journal.append("b", 2)  # room was made
    with Journal.open(path, PRINT) as journal:
        assert journal.done == {"a": 1, "b": 2}


def test_a_full_disk_that_cannot_even_be_cut_back_spoils_nothing(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with Journal.open(path, PRINT) as journal:
        journal.append("a", 1)
        with monkeypatch.context() as patch:
            patch.setattr(os, "write", full(20))
            patch.setattr(os, "ftruncate", refuse)
            with pytest.raises(RunError, match="the disk is full"):
                journal.append("a longer name than the next", 2)
        journal.append("b", 3)
    with Journal.open(path, PRINT) as journal:
        assert journal.done == {"a": 1, "b": 3}
        assert journal.dropped == 0


@pytest.mark.parametrize("call", ["write", "fsync"])
def test_ctrl_c_within_a_line_takes_the_line_back(
    call: str, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = getattr(os, call)

    def interrupted(*arguments: Any) -> None:
        real(*arguments)
        raise KeyboardInterrupt

    with Journal.open(path, PRINT) as journal:
        before = path.read_bytes()
        with monkeypatch.context() as patch:
            patch.setattr(os, call, interrupted)
            with pytest.raises(KeyboardInterrupt):
                journal.append("a", 1)
        assert path.read_bytes() == before
        journal.append("a", 1)


def test_a_disk_too_full_for_the_header_leaves_no_file(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "write", full(5))
    with pytest.raises(RunError, match=r"could not be begun: the disk is full\. Nothing was left"):
        Journal.open(path, PRINT)
    assert not path.exists()


LIMITED = """
import resource, sys
from headcount.errors import RunError
from headcount.records.journal import Journal
with Journal.open(sys.argv[1], {"seed": 0}) as journal:
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
    try:
        for number in range(1000):
            journal.append(f"unit {number}", number / 3)
    except RunError as error:
        print(error)
        print(len(journal.done))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limit on file sizes")
def test_a_real_limit_cuts_back_to_the_last_whole_line(path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", LIMITED, path], capture_output=True, text=True)
    message, count = done.stdout.splitlines()
    assert "could not be added to" in message
    assert "file too large" in message
    assert path.read_bytes().endswith(b"\n")
    with Journal.open(path, {"seed": 0}) as journal:
        assert journal.dropped == 0
        assert len(journal.done) == int(count) > 5
        assert journal.done == {f"unit {n}": n / 3 for n in range(int(count))}


SWEEP = """
import sys
from headcount.records.journal import Journal
total = int(sys.argv[2])
with Journal.open(sys.argv[1], {"seed": 0}) as journal:
    for number in range(total):
        if f"unit {number}" not in journal.done:
            journal.append(f"unit {number}", {"value": number / 7, "padding": "x" * 5000})
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")
def test_a_killed_sweep_goes_on_and_ends_the_same(path: Path) -> None:
    command = [sys.executable, "-c", SWEEP, str(path), "100000"]
    for kill in range(3):
        with subprocess.Popen(command) as process:
            wait_for(path, size=20_000 + 100_000 * kill, process=process)
            process.send_signal(signal.SIGKILL)
            assert process.wait() == -signal.SIGKILL
        with Journal.open(path, {"seed": 0}) as journal:
            reached = len(journal.done)
            assert list(journal.done) == [f"unit {n}" for n in range(reached)]
            assert all(journal.done[f"unit {n}"]["value"] == n / 7 for n in range(reached))
    end = str(reached + 5)
    subprocess.run([sys.executable, "-c", SWEEP, path, end], check=True)
    unbroken = path.with_name("unbroken.jsonl")
    subprocess.run([sys.executable, "-c", SWEEP, unbroken, end], check=True)
    assert path.read_bytes() == unbroken.read_bytes()


def wait_for(path: Path, size: int, process: subprocess.Popen[bytes]) -> None:
    """Wait until the sweep has written so much."""
    deadline = time.monotonic() + 60
    while not path.exists() or path.stat().st_size < size:
        assert process.poll() is None, "the sweep ended by itself"
        assert time.monotonic() < deadline, "the sweep writes nothing"
        time.sleep(0.001)
