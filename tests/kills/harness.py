"""Break a command off at its k-th file operation, run it again, and compare what it wrote.

The process that imports this has the shim of shim.c preloaded. It forks for every run, so that
torch is imported once; the children count operations below their folder and break off at one:

- kill: SIGKILL before the k-th operation; torn: after half of the bytes of the k-th, a write
- full: from the k-th on everything that needs room fails with ENOSPC
- read-only: from the k-th on everything fails with EROFS
- interrupt: SIGINT (Ctrl-C) before the k-th operation
- kill-anytime, interrupt-anytime: the signal comes after k hundredths of the command's own time

A broken command that was not killed must end with one sentence. The same command, run again
undisturbed, must end well, with the same files as if nothing had happened.
"""

from __future__ import annotations

import argparse
import atexit
import ctypes
import importlib
import json
import os
import re
import runpy
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from kills.commands import ALWAYS, COMMANDS, LESS, make_inputs, steady_times

MODES = ("count", "kill", "torn", "full", "read-only", "interrupt")
#: Those in which a signal comes at a moment rather than at an operation.
ANYTIME = {"kill-anytime": signal.SIGKILL, "interrupt-anytime": signal.SIGINT}
SHIM = "HEADCOUNT_SHIM"
#: A command that takes a second alone, on a machine with other work.
_SECONDS = 400
#: All that may differ between two runs: moments, wherever they stand, how long a stage took, and
#: how fast a model is.
_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)")
_DURATION = "seconds"
_TIMES = re.compile(r'"times":\{.*?\]\}')
_STAGE = re.compile(r'(\["Stage [^"]*","[^"]*?)(?:, )?\d+ s("\])')


def build_shim(folder: Path) -> Path:
    """The shim, compiled; raises where there is no C compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None or sys.platform != "linux":
        raise RuntimeError("the harness needs Linux and a C compiler (cc)")
    found = folder / "shim.so"
    source = Path(__file__).with_name("shim.c")
    subprocess.run([compiler, "-O1", "-shared", "-fPIC", "-o", found, source, "-ldl"], check=True)
    return found


def shim_environment(shim: Path) -> dict[str, str]:
    """What a process needs to have the shim, and to fork safely."""
    threads = {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false", "HF_HUB_OFFLINE": "1"}
    return os.environ | threads | {"LD_PRELOAD": str(shim), SHIM: str(shim), "COLUMNS": "100"}


# --- The scripts: what they are asked for, and where they work ----------------------------------


def asked_for(about: str, commands: Iterable[str], **options: dict[str, Any]) -> argparse.Namespace:
    """The words after a script: which `commands`, how many trials, its own options; as `.names`."""
    parser = argparse.ArgumentParser(description=about.splitlines()[0])
    parser.add_argument("--only", default="", help="names that begin so; several with ; between")
    parser.add_argument("--each", type=int, help="so many trials of each")
    parser.add_argument("--json", type=Path, help="write the counts here, too")
    for name, how in options.items():
        parser.add_argument(f"--{name}", **how)
    asked = parser.parse_args()
    asked.names = [name for name in commands if name.startswith(tuple(asked.only.split(";")))]
    return asked


@contextmanager
def scratch_folder(names: Iterable[str]) -> Iterator[Path]:
    """A folder for trials of these commands; the script begins anew, with the shim preloaded."""
    if SHIM not in os.environ:
        with tempfile.TemporaryDirectory() as folder:
            words = [sys.executable, *sys.argv]
            shim = shim_environment(build_shim(Path(folder)))
            sys.exit(os.spawnve(os.P_WAIT, sys.executable, words, shim))
    # Not a TemporaryDirectory: every fork would remove it at its end.
    scratch = Path(tempfile.mkdtemp()).resolve()
    try:
        warm_up(names, scratch)
        yield scratch
    finally:
        shutil.rmtree(scratch)


def write_json(file: Path | None, counts: dict[str, Any]) -> None:
    """Counts so far, where they are asked for: a script that is ended early has them."""
    if file is not None:
        file.write_text(json.dumps(counts, indent=1) + "\n", encoding="utf8")


# --- One run of a command, in a fork ------------------------------------------------------------


@dataclass(frozen=True)
class Ended:
    """How a command ended, what it printed, and the file operations it did."""

    #: The exit code; None after SIGKILL.
    code: int | None
    said: str
    operations: list[str]


def run(
    folder: Path, command: list[str], mode: str = "count", at: int = 0, seconds: float = 0.0
) -> Ended:
    """Run a command in the folder, broken off at the `at`-th operation.

    Where a signal comes at a moment, that is after `at` hundredths of so many seconds.
    """
    with tempfile.TemporaryFile("w+b") as said, tempfile.TemporaryFile("w+b") as log:
        child = os.fork()
        if child == 0:
            signal.alarm(_SECONDS)  # a command that hangs is killed, and seen as such
            os.dup2(said.fileno(), 1)
            os.dup2(said.fileno(), 2)
            armed = "count" if mode in ANYTIME else mode
            os._exit(_run_here(folder, command, armed, at, log.fileno()))
        if mode in ANYTIME:
            time.sleep(seconds * at / 100)
            os.kill(child, ANYTIME[mode])  # of a child that has ended, until it is waited for
        _, status = os.waitpid(child, 0)
        for file in (said, log):
            file.seek(0)
        killed = os.WIFSIGNALED(status)
        if killed and os.WTERMSIG(status) != signal.SIGKILL:
            code: int | None = -os.WTERMSIG(status)
        else:
            code = None if killed else os.WEXITSTATUS(status)
        return Ended(code, said.read().decode("utf8", "replace"), log.read().decode().splitlines())


def _run_here(folder: Path, command: list[str], mode: str, at: int, log: int) -> int:
    from headcount.cli.main import run as headcount

    shim = ctypes.CDLL(os.environ[SHIM])
    os.chdir(folder)
    sys.argv = ["headcount", *command, *LESS.get(command[0], ALWAYS)]
    subprocess.run = _forked(subprocess.run, shim.shim_disarm)
    steady_times()
    shim.shim_arm(str(folder).encode(), ctypes.c_long(at), MODES.index(mode), log)
    code = 70
    try:
        headcount()
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(bool(ended.code))
    except BaseException:
        import traceback

        traceback.print_exc()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    return code


def _forked(real: Callable[..., Any], disarm: Callable[[], None]) -> Callable[..., Any]:
    """`subprocess.run`, but for the program that loads a saved model again: that one is forked.

    It would import torch anew, which takes longer than all the rest.
    """

    def quick(command: Any, *args: Any, **options: Any) -> Any:
        program = next((word for word in command if str(word).endswith("fresh_load.py")), None)
        if program is None:
            return real(command, *args, **options)
        with tempfile.TemporaryFile("w+") as out:
            child = os.fork()
            if child == 0:
                disarm()
                os.dup2(out.fileno(), 1)
                os.environ.update(options["env"])
                sys.argv = [str(word) for word in command[command.index(program) :]]
                code = 0
                try:
                    runpy.run_path(str(program), run_name="__main__")
                except SystemExit as ended:
                    code = int(ended.code or 0)
                sys.stdout.flush()
                os._exit(code)
            _, status = os.waitpid(child, 0)
            out.seek(0)
            return subprocess.CompletedProcess(command, os.WEXITSTATUS(status), out.read(), "")

    return quick


# --- What a command left in its folder ----------------------------------------------------------


def contents(folder: Path, inputs: Iterable[str]) -> dict[str, Any]:
    """Every file that is not an input, as values that can be compared."""
    given = set(inputs)
    found = {}
    for file in sorted(folder.rglob("*")):
        name = str(file.relative_to(folder))
        if name.split("/")[0] not in given:
            found[name] = None if file.is_dir() else _value(file)
    return found


def _value(file: Path) -> Any:
    try:
        return _parsed(file)
    except Exception:  # cut off in the middle
        return file.read_bytes().hex()


def _parsed(file: Path) -> Any:
    if file.suffix == ".parquet":
        frame = pd.read_parquet(file)
        if file.stem == "bench":
            frame = frame[["removed", "heads_left", "megabytes"]]
        return json.loads(frame.to_json(orient="split", double_precision=15))
    if file.suffix == ".npz":
        with np.load(file, allow_pickle=False) as arrays:
            return {name: arrays[name].tolist() for name in arrays.files}
    if file.suffix == ".html":
        text = _TIMES.sub("", _MOMENT.sub("then", file.read_text(encoding="utf8")))
        return _STAGE.sub(r"\1\2", text)
    if file.suffix == ".json":
        found = json.loads(_MOMENT.sub("then", file.read_text(encoding="utf8")))
        if file.name == "run.json" and "origins" in found:
            # A column's origin is the table's where it has none of its own: the same said twice.
            names = [column["name"] for column in found["columns"]]
            own = found["origins"]
            found["origins"] = {name: own.get(name, found["provenance"]) for name in names}
        return found
    return file.read_bytes().hex()


def differences(one: Any, two: Any, at: str = "") -> list[str]:
    """The places where two contents are not the same."""
    if isinstance(one, dict) and isinstance(two, dict):
        keys = sorted(one.keys() | two.keys())
        missing = [f"{at}/{key}" for key in keys if (key in one) != (key in two)]
        both = (key for key in keys if key in one and key in two)
        return missing + [
            place for key in both for place in differences(one[key], two[key], f"{at}/{key}")
        ]
    if isinstance(one, list) and isinstance(two, list) and len(one) == len(two):
        pairs = enumerate(zip(one, two, strict=True))
        return [place for k, (a, b) in pairs for place in differences(a, b, f"{at}/{k}")]
    same = one == two or (one != one and two != two)  # NaN is itself
    return [] if same else [at]


# --- All trials of one command ------------------------------------------------------------------


class Bench:
    """A command, what it does to files, and what it writes when nothing happens."""

    def __init__(self, name: str, scratch: Path) -> None:
        self.name, self.command, self.scratch = name, COMMANDS[name], scratch
        self.inputs = scratch / "inputs"
        if not self.inputs.exists():
            self.inputs.mkdir()
            make_inputs(self.inputs)
        self.names = [entry.name for entry in self.inputs.iterdir()]
        self.wanted, self.operations = self._whole()
        if apart := _beyond_durations(self.wanted, self._whole()[0]):
            raise RuntimeError(f"two undisturbed runs of {name} differ in {sorted(apart)[:9]}")

    def _folder(self) -> Path:
        folder = self.scratch / "work"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        for entry in self.inputs.iterdir():  # links: inputs are only read
            (folder / entry.name).symlink_to(entry)
        return folder

    def _whole(self) -> tuple[dict[str, Any], list[str]]:
        folder = self._folder()
        began = time.monotonic()
        ended = run(folder, self.command)
        self.seconds = time.monotonic() - began
        if ended.code != 0:
            raise RuntimeError(f"{self.name} ends with {ended.code}: {ended.said[-2000:]}")
        return contents(folder, self.names), ended.operations

    def trial(self, mode: str, at: int) -> str:
        """What is wrong after a break at one operation; empty where all is well."""
        folder = self._folder()
        broken = run(folder, self.command, mode, at, self.seconds)
        if mode in ("full", "read-only", "interrupt", "interrupt-anytime") and (
            wrong := _unsaid(broken)
        ):
            return wrong
        if wrong := _unreadable(folder):
            return wrong
        if not self._apart(folder):
            return ""  # all was written already; a finished command may be refused
        again = run(folder, self.command)
        if again.code != 0:
            return f"the rerun ends with {again.code}: {_last(again.said)}"
        if apart := self._apart(folder):
            return f"the rerun differs in {', '.join(sorted(apart)[:4])}"
        return ""

    def _apart(self, folder: Path) -> set[str]:
        """Where a folder differs from what is wanted; an open lock is let go by the kernel."""
        found = contents(folder, self.names)
        found = {name: value for name, value in found.items() if Path(name).name != ".lock"}
        return _beyond_durations(self.wanted, found)


def _beyond_durations(one: Any, two: Any) -> set[str]:
    return {at for at in differences(one, two) if at.rpartition("/")[2] != _DURATION}


def _last(said: str) -> str:
    return " / ".join(line.strip() for line in said.strip().splitlines()[-3:])[:400]


def _unsaid(ended: Ended) -> str:
    """A disk that is full or read-only ends in one sentence, or is no hindrance any more."""
    if ended.code not in (0, 1, 130, -signal.SIGINT):  # the last, after all was done, at exit
        return f"ended with {ended.code}: {_last(ended.said)}"
    if "Traceback" in ended.said:
        return f"a traceback: {_last(ended.said)}"
    return ""


def _unreadable(folder: Path) -> str:
    """What lies there after the break is read, or refused by name; in a fork, as another would."""
    import headcount as hc

    for record in folder.rglob("run.json"):
        try:
            with hc.Run.open(record.parent, create=False) as found:
                if found.has_table:
                    found.read_table()
                for name in found.frames:
                    found.read_frame(name)
        except hc.HeadcountError as error:
            return f"a reader between refuses: {error}"
        except Exception as error:
            return f"a reader between meets {type(error).__name__}: {error}"
    return ""


def warm_up(names: Iterable[str], scratch: Path) -> None:
    """Import what the commands import, so that forks have it: a first run of each says what."""
    inputs = scratch / "inputs"
    if not inputs.exists():
        inputs.mkdir()
        make_inputs(inputs)
    for name in names:
        folder = scratch / "warm"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(inputs, folder)
        listed = scratch / "modules.json"
        child = os.fork()
        if child == 0:
            with open(os.devnull, "w") as nothing:  # noqa: PTH123 - a descriptor is wanted
                os.dup2(nothing.fileno(), 1)
                os.dup2(nothing.fileno(), 2)
            _run_here(folder, COMMANDS[name], "count", 0, 1)
            listed.write_text(json.dumps(sorted(sys.modules)), encoding="utf8")
            os._exit(0)
        os.waitpid(child, 0)
        for module in json.loads(listed.read_text(encoding="utf8")):
            if module not in sys.modules and not module.startswith("__"):
                try:
                    importlib.import_module(module)
                except Exception:
                    continue  # made on the fly by a library
