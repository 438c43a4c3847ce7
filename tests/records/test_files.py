"""Tests of `records/files.py`."""

from __future__ import annotations

import errno
import json
import math
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path, PurePosixPath

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headcount.errors import RunError, UsageError
from headcount.records.files import json_decode, json_encode, write_bytes
from headcount.records.heads import Head


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def fails(error: BaseException) -> Callable[..., None]:
    def call(*_: object, **__: object) -> None:
        raise error

    return call


def test_the_file_is_there_and_nothing_else(tmp_path: Path) -> None:
    write_bytes(tmp_path / "a", b"old")
    write_bytes(tmp_path / "a", b"new")
    assert (tmp_path / "a").read_bytes() == b"new"
    assert names(tmp_path) == ["a"]


def test_drafts_of_processes_that_are_gone_go_too(tmp_path: Path) -> None:
    """A page that was cut off in the middle; the draft of somebody who still writes stays."""
    gone = subprocess.run(
        [sys.executable, "-c", "import os; print(f'{os.getpid():06x}')"],
        capture_output=True, text=True, check=True,
    ).stdout.strip()  # fmt: skip
    alive = f".page.html.{os.getpid():06x}00.tmp"
    others = [alive, f".notes.txt.{gone}00.tmp", ".page.html.tmp"]
    for name in (f".page.html.{gone}ff.tmp", *others):
        (tmp_path / name).write_bytes(b"half")
    write_bytes(tmp_path / "page.html", b"whole")
    assert names(tmp_path) == sorted([*others, "page.html"])


def test_the_file_is_as_readable_as_any_new_file(tmp_path: Path) -> None:
    (tmp_path / "plain").touch()
    write_bytes(tmp_path / "a", b"")
    modes = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("plain", "a")]
    assert modes[0] == modes[1]


@pytest.mark.parametrize("call", ["write", "fsync", "replace"])
@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left"), KeyboardInterrupt()])
def test_whatever_fails_the_old_file_stays_whole(
    call: str, error: BaseException, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").write_bytes(b"old")
    with monkeypatch.context() as patch:
        patch.setattr(os, call, fails(error))
        with pytest.raises((RunError, KeyboardInterrupt)) as caught:
            write_bytes(tmp_path / "a", b"new")
    assert (tmp_path / "a").read_bytes() == b"old"
    assert names(tmp_path) == ["a"]
    if isinstance(error, OSError):
        assert "a could not be written: the disk is full. The file that was there is untouched" in (
            str(caught.value)
        )
    else:
        assert caught.type is KeyboardInterrupt


def test_data_reaches_the_disk_before_its_name_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    for name in ("write", "fsync", "replace"):
        real = getattr(os, name)
        monkeypatch.setattr(
            os, name, lambda *a, name=name, real=real, **k: (calls.append(name), real(*a, **k))[1]
        )
    write_bytes(tmp_path / "a", b"data")
    assert calls == ["write", "fsync", "replace", "fsync"]


def test_a_write_that_takes_only_a_part_is_gone_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: real(descriptor, data[:3]))
    write_bytes(tmp_path / "a", b"0123456789")
    assert (tmp_path / "a").read_bytes() == b"0123456789"


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(
        RunError, match=r"could not be written: no such file or directory\. Nothing"
    ):
        write_bytes(tmp_path / "none" / "a", b"")


LIMITED = """
import resource, sys
from headcount.records.files import write_bytes
from headcount.errors import RunError
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    write_bytes(sys.argv[1], b"x" * 5000)
except RunError as error:
    print(error)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limit on file sizes")
def test_a_real_limit_on_the_way_leaves_the_old_file_alone(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"old")
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, tmp_path / "a"], capture_output=True, text=True
    )
    assert "could not be written: file too large" in done.stdout, done.stderr
    assert (tmp_path / "a").read_bytes() == b"old"
    assert names(tmp_path) == ["a"]


# ---  -------------------------------------------------------------------------------------------


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
).filter(lambda value: "$float" not in str(value))


def same(a: object, b: object) -> bool:
    """Equal to the bit: NaN equals NaN, 0.0 is not -0.0, 1 is not 1.0, True is not 1."""
    return repr(a) == repr(b)


@given(ANYTHING)
def test_whatever_goes_in_comes_out(value: object) -> None:
    assert same(json_decode(json_encode(value)), value)


@given(st.floats())
def test_what_is_written_is_strict_json(value: float) -> None:
    def refuse(name: str) -> None:
        raise AssertionError(f"{name} is not JSON")

    json.loads(json_encode({"x": [value]}), parse_constant=refuse)


@pytest.mark.parametrize(
    ("given", "read"),
    [
        (np.float32(0.1), float(np.float32(0.1))),
        (np.float64(0.1), 0.1),
        (np.int64(7), 7),
        (np.bool_(True), True),
        (np.array([[1.0, np.inf]]), [[1.0, math.inf]]),
        ((1, 2), [1, 2]),
        (Head("enc", 5, 3), "enc.5.3"),
        (PurePosixPath("a/b"), "a/b"),
    ],
)
def test_numpy_heads_and_paths_become_plain(given: object, read: object) -> None:
    assert same(json_decode(json_encode(given)), read)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"a": [1, {2}]}, r"a\[1\] is of type set, which cannot be written as JSON"),
        (np.longdouble(1), "The value is of type longdouble"),
        ({"a": {1: 2}}, r"a has the key 1; keys are text in JSON, so write '1'"),
        ({"$float": "nan"}, r"The key '\$float' is kept for NaN"),
    ],
)
def test_what_would_not_come_back_is_refused(value: object, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        json_encode(value)


@pytest.mark.parametrize("text", ["NaN", "[Infinity]", '{"$float": []}', "{", ""])
def test_text_that_is_not_ours_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - json's own message
        json_decode(text)
