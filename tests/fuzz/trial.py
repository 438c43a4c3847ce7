"""One damaged input: is it read, refused in one sentence, or does something else happen?"""

from __future__ import annotations

import re
import resource
import signal
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Literal

from fuzz.targets import Target

import headcount as hc
from headcount.errors import UnsupportedModel

#: A reader may take so much of a core for a file of some kilobytes, and so much memory.
SECONDS = 10.0
MEGABYTES = 600.0
#: Words that only a programmer wants to read.
_INSIDE = re.compile(r"Traceback|<class '|<function | object at 0x|(?<!\.)\bself\.|\.py\b")
_LONGEST = 1_500


@dataclass(frozen=True)
class Trial:
    """What came of one input."""

    target: str
    ended: Literal["read", "refused", "crash"]
    seconds: float
    megabytes: float
    #: Why it is a crash; empty otherwise.
    why: str = ""


class _TooLong(BaseException):
    """A reader that took longer than it may."""


@contextmanager
def _at_most(seconds: float) -> Iterator[None]:
    def stop(number: int, frame: FrameType | None) -> None:
        raise _TooLong

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def _status(key: str) -> float:
    """A line of /proc/self/status in megabytes; 0 elsewhere than on Linux."""
    with suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith(key):
                return int(line.split()[1]) / 1024
    return 0.0


def _forget_peak() -> None:
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def limit_memory(megabytes: float = 4_000) -> None:
    """Let allocations beyond this fail, rather than take the machine down with them."""
    room = int((_status("VmData") + megabytes) * 2**20)
    resource.setrlimit(resource.RLIMIT_DATA, (room, resource.getrlimit(resource.RLIMIT_DATA)[1]))


def complaint(message: str, named: str) -> str:
    """What is wrong with a sentence; empty where it is as promised."""
    if "\n" in message or "\r" in message:
        return "more than one line"
    if any(ord(sign) < 32 or ord(sign) == 127 for sign in message):
        return "a control character"
    if len(message) > _LONGEST:
        return f"{len(message)} characters"
    if _INSIDE.search(message):
        return "words from inside"
    if named not in message:
        return f"does not name {named}"
    return ""


def try_out(target: Target, folder: Path, data: bytes) -> Trial:
    """Put the data in the place of the target's file, and read."""
    (folder / target.file).write_bytes(target.pack(data))
    _forget_peak()
    before, began = _status("VmRSS"), time.process_time()
    why = ""
    ended: Literal["read", "refused", "crash"] = "read"
    try:
        with _at_most(SECONDS):
            target.read(folder)
    except hc.HeadcountError as error:
        ended = "refused"
        # A model that was loaded and cannot be used is named by its class, not by its file.
        loaded = isinstance(error, UnsupportedModel)
        named = Path(target.file).name if target.named is None else target.named
        why = complaint(str(error), "" if loaded else named)
        if why:
            ended, why = "crash", f"sentence: {why}: {str(error)[:300]!r}"
    except _TooLong:
        ended, why = "crash", f"took longer than {SECONDS:.0f} seconds"
    except Exception as error:  # the very thing that is looked for
        ended, why = "crash", _where(error)
    seconds, peak = time.process_time() - began, max(0.0, _status("VmHWM") - before)
    if ended != "crash" and peak > MEGABYTES:
        ended, why = "crash", f"took {peak:.0f} MB"
    return Trial(target.name, ended, seconds, peak, why)


def _where(error: Exception) -> str:
    """The error, and the innermost line of headcount that it went through."""
    own = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if "headcount" in frame.filename
    ]
    place = f"{Path(own[-1].filename).name}:{own[-1].lineno} {own[-1].name}" if own else "?"
    return f"{type(error).__name__} at {place}: {str(error)[:200]!r}"
