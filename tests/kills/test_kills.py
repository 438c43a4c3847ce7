"""A command that was broken off goes on: the same command again ends with the same files.

A few operations of three commands; ``make kills`` breaks off all of them at every one.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from kills.harness import differences

COMMANDS = "score;prune, ranked;compare"


@pytest.mark.skipif(
    sys.platform != "linux" or shutil.which("cc") is None, reason="needs Linux and a C compiler"
)
def test_broken_off_and_run_again() -> None:
    words = [sys.executable, Path(__file__).parent, "--only", COMMANDS, "--each", "2"]
    done = subprocess.run(
        [*words, "--modes", "kill,full"], capture_output=True, text=True, timeout=280
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "kill: 6 of 6 survived" in done.stdout
    assert "full: 6 of 6 survived" in done.stdout


def test_differences_are_found() -> None:
    nan = float("nan")
    one = {"a": [1, nan, {"b": 2}], "c": "x"}
    assert differences(one, {"a": [1, nan, {"b": 2}], "c": "x"}) == []
    assert differences(one, {"a": [1, nan, {"b": 3}], "d": "x"}) == ["/c", "/d", "/a/2/b"]
    assert differences([1, 2], [1]) == [""]
