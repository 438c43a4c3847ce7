"""Progress: by itself for long work, by an object of one's own, or not at all."""

from __future__ import annotations

import gc
import io
import re
import sys
import time
from contextlib import suppress
from types import SimpleNamespace

import pytest

import headcount as hc
from headcount.records import Bars, announce, working


class Seen:
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.told: list[object] = []

    def start(self, total: int, title: str) -> None:
        self.told.append((title, total))

    def advance(self, n: int = 1) -> None:
        self.told.append(n)

    def done(self) -> None:
        self.told.append("done")


def test_work_within_work_and_an_error_are_closed() -> None:
    seen = Seen()

    def work() -> None:
        with hc.progress(seen), working("A", 2) as outer:
            outer()
            with working("B") as inner:
                inner.to(3)
                inner.to(3)  # nothing new
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        work()
    assert seen.told == [("A", 2), 1, ("B", 0), 3, "done", "done"]


def test_what_is_no_display_is_refused() -> None:
    with pytest.raises(hc.HeadcountError, match=r"has no start\(\); give True, False or an object"):
        hc.progress(print)  # type: ignore[arg-type]


def test_the_display_before_comes_back() -> None:
    first, second = Seen(), Seen()
    with hc.progress(first):
        with hc.progress(second), working("B", 1):
            pass
        with hc.progress(False), working("C", 1):
            announce("nobody hears")
        with working("A", 1):
            pass
    assert (first.told, second.told) == ([("A", 1), "done"], [("B", 1), "done"])


def shown(monkeypatch: pytest.MonkeyPatch, delay: float, terminal: bool = True) -> str:
    """What bars write to a terminal or a log."""
    stream = io.StringIO()
    monkeypatch.setattr(stream, "isatty", lambda: terminal)
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(Bars, "DELAY", delay)
    monkeypatch.setattr(Bars, "SILENCE", delay)
    with hc.progress(True), working("Reading\x1b[2J", 2) as advance:
        for _ in range(2):
            time.sleep(0.15)  # tqdm draws ten times a second
            advance()
        announce("A sentence.")
    return stream.getvalue()


def test_short_work_shows_nothing_and_long_work_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    assert shown(monkeypatch, 2.0).strip() == "A sentence."
    bar = shown(monkeypatch, 1e-9)
    assert re.search(r"Reading\\x1b\[2J: +50%", bar)
    assert "\x1b[2J" not in bar


@pytest.mark.parametrize("running", [False, True])
def test_in_a_log_there_are_lines_and_in_a_notebook_a_bar(
    monkeypatch: pytest.MonkeyPatch, running: bool
) -> None:
    """A kernel that is imported and not run is no notebook."""
    app = SimpleNamespace(initialized=lambda: running)
    monkeypatch.setitem(sys.modules, "ipykernel.kernelapp", SimpleNamespace(IPKernelApp=app))
    log = shown(monkeypatch, 1e-9, terminal=False)
    assert ("Reading\\x1b[2J: 2 of 2" in log.splitlines()) != running
    assert ("50%" in log) == running


def test_the_collector_leaves_alone_what_was_there_before() -> None:
    assert gc.get_freeze_count() == 0
    with working("Long"):
        assert gc.get_freeze_count() > 1000
        with working("Inner"):
            pass
        assert gc.get_freeze_count() > 1000
    assert gc.get_freeze_count() == 0
    gc.freeze()  # somebody else's stays
    with suppress(KeyError), working("Broken off"):
        raise KeyError
    assert gc.get_freeze_count() > 1000
    gc.unfreeze()
