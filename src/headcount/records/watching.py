"""Progress: how long work says how far it is, to whoever shows it.

Work is shown by one object at a time: a bar of tqdm in Python, the command line's display, or one
of yours. `progress` chooses it, and nothing has to be handed through the functions between.
"""

from __future__ import annotations

import gc
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any, Protocol

from headcount.errors import UsageError, printable


class Progress(Protocol):
    """What shows progress; work within work is started and done within it.

    A display that also has ``say(sentence)`` gets what is worth saying before long work.
    """

    def start(self, total: int, title: str) -> None:
        """Work begins, with this number of parts; 0 if unknown."""

    def advance(self, n: int = 1) -> None:
        """Add finished parts to the work that began last."""

    def done(self) -> None:
        """The work that began last has ended."""


class progress:  # noqa: N801 - called like a function, and also entered
    """Choose what shows progress: bars (True), nothing (False), or a `Progress` of yours.

    Called, it holds until the next call; as a context, within the block. Bars come by themselves
    for work that takes more than two seconds; ``HEADCOUNT_PROGRESS=off`` in the environment turns
    them off too.

    >>> class Lines:
    ...     def start(self, total, title):
    ...         print(title, total)
    ...     def advance(self, n=1):
    ...         print("+", n)
    ...     def done(self):
    ...         print("done")
    >>> with progress(Lines()), working("Reading", 2) as advance:
    ...     advance(2)
    Reading 2
    + 2
    done
    """

    def __init__(self, shown: Progress | bool = True) -> None:
        lacking = [name for name in ("start", "advance", "done") if not hasattr(shown, name)]
        if not isinstance(shown, bool) and lacking:
            raise UsageError(
                f"progress is {shown!r} and has no {lacking[0]}(); give True, False or an object "
                "with start(total, title), advance(n) and done()."
            )
        self._before = _SHOWN[0]
        _SHOWN[0] = Bars() if shown is True else (None if shown is False else shown)

    def __enter__(self) -> Progress | None:
        return _SHOWN[0]

    def __exit__(self, *_: object) -> None:
        _SHOWN[0] = self._before


class Steps:
    """How far some work is; `to` says it as a number of parts that are done by now."""

    def __init__(self, shown: Progress | None = None) -> None:
        self._shown, self._done = shown, 0

    def __call__(self, n: int = 1) -> None:
        """So many more parts are done."""
        self._done += n
        if self._shown is not None and n:
            self._shown.advance(n)

    def to(self, done: int) -> None:
        """Set the number of finished parts; it may fall if a part is begun anew."""
        self(done - self._done)


#: Holds something while the collector leaves alone what was there.
_FROZEN: list[bool] = []


@contextmanager
def few_collected() -> Iterator[None]:
    """Within the block Python's collector leaves alone what was there before.

    A walk over all that torch and transformers hold takes longer than a survey of 1,000 sentences.
    """
    # What somebody else froze stays so. To count it takes long where there is any.
    if _FROZEN or gc.get_freeze_count():
        yield
        return
    gc.freeze()
    _FROZEN.append(True)
    try:
        yield
    finally:
        _FROZEN.clear()
        gc.unfreeze()


@contextmanager
def working(title: str, total: int = 0) -> Iterator[Steps]:
    """Show that work goes on within the block; gives what to call with each part that is done."""
    shown = _SHOWN[0]
    if shown is not None:
        shown.start(total, title)
    try:
        with few_collected():
            yield Steps(shown)
    finally:
        if shown is not None:
            shown.done()


@contextmanager
def noticed(note: Callable[[float], None], every: float) -> Iterator[None]:
    """Within the block `note` also gets the share that is done, every few seconds."""
    with progress(_Noticed(_SHOWN[0], note, every)):
        yield


class _Noticed:
    """Hands progress on, and notes how far the work is whose parts are counted."""

    def __init__(self, shown: Progress | None, note: Callable[[float], None], every: float) -> None:
        self._shown, self._note, self._every = shown, note, every
        self._open: list[list[int]] = []
        self._noted = monotonic()
        self.say = getattr(shown, "say", lambda what: None)

    def start(self, total: int, title: str) -> None:
        self._open.append([0, total])
        if self._shown is not None:
            self._shown.start(total, title)

    def advance(self, n: int = 1) -> None:
        self._open[-1][0] += n
        counted = [one for one in self._open if one[1]]
        # What is done within a part that is not done yet.
        done, total = (sum(one[0] for one in counted), counted[0][1]) if counted else (0, 0)
        if total and monotonic() - self._noted > self._every:
            self._noted = monotonic()
            self._note(done / total)
        if self._shown is not None:
            self._shown.advance(n)

    def done(self) -> None:
        self._open.pop()
        if self._shown is not None:
            self._shown.done()


def announce(what: object) -> None:
    """Say something before or after long work, where progress is shown."""
    say = getattr(_SHOWN[0], "say", None)
    if say is not None:
        say(what)


class Bars:
    """Bars of tqdm, in a notebook or a terminal; in a log a line twice a minute."""

    #: Seconds before a bar appears, and between lines of a log.
    DELAY, SILENCE = 2.0, 30.0

    def __init__(self) -> None:
        self._bars: list[Any] = []

    def start(self, total: int, title: str) -> None:
        """A bar, which shows itself when the work takes its time."""
        with warnings.catch_warnings(action="ignore"):  # of widgets that a notebook lacks
            from tqdm.auto import tqdm
        kernel: Any = sys.modules.get("ipykernel.kernelapp")  # it may be imported and not run
        watched = (kernel and kernel.IPKernelApp.initialized()) or sys.stderr.isatty()
        how: dict[str, Any] = {"delay": self.DELAY, "leave": False}
        if not watched:
            of = " of {total:,}" if total else ""
            how = {"delay": self.SILENCE, "bar_format": f"{{desc}}: {{n:,}}{of}\n"}
            how |= {"mininterval": self.SILENCE, "maxinterval": self.SILENCE}
        self._bars.append(tqdm(total=total or None, desc=printable(title), **how))

    def advance(self, n: int = 1) -> None:
        """Move the last bar."""
        self._bars[-1].update(n)

    def done(self) -> None:
        """Close the last bar."""
        self._bars.pop().close()

    def say(self, what: object) -> None:
        """A sentence above the bars."""
        if isinstance(what, str):
            bars = [one for one in self._bars if one.last_print_n]
            for one in bars:
                one.clear()
            stderr = sys.stderr
            stderr.write(printable(what) + "\n")


#: What shows progress now: one for the process, since a terminal is one.
_SHOWN: list[Progress | None] = [
    None if os.environ.get("HEADCOUNT_PROGRESS", "").lower() in ("0", "off", "no") else Bars()
]
