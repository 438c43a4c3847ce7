"""Break commands off at every file operation, and count how many reruns end the same.

python tests/kills [--only WORD] [--modes kill,torn,full,read-only,interrupt] [--each N]

With --each N only N operations of each command and mode, spread evenly. Linux and a C compiler.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from kills.commands import COMMANDS
from kills.harness import ANYTIME, MODES, SHIM, Bench, build_shim, shim_environment, warm_up


def chosen(operations: list[str], mode: str, each: int | None) -> list[int]:
    """The operations to break off at, counting from 1; or the hundredths of its time."""
    if mode in ANYTIME:
        return sorted(Random(each).sample(range(2, 100), each or 20))
    every = [
        number
        for number, operation in enumerate(operations, start=1)
        if mode != "torn" or operation.startswith("write ")
    ]
    if each is None or len(every) <= each:
        return every
    return [every[round(k * (len(every) - 1) / max(1, each - 1))] for k in range(each)]


def trials(bench: Bench, modes: list[str], each: int | None) -> dict[str, Any]:
    """The counts of one command."""
    row: dict[str, Any] = {"command": bench.name, "operations": len(bench.operations)}
    row |= {"by_operation": dict(Counter(line.split()[0] for line in bench.operations))}
    for mode in modes:
        began, failed = time.monotonic(), []
        numbers = chosen(bench.operations, mode, each)
        for number in numbers:
            wrong = bench.trial(mode, number)
            if wrong:
                on = "" if mode in ANYTIME else bench.operations[number - 1]
                failed.append({"at": number, "on": on, "wrong": wrong})
        seconds = round(time.monotonic() - began)
        row[mode] = {
            "injected": len(numbers),
            "survived": len(numbers) - len(failed),
            "seconds": seconds,
            "failed": failed,
        }
        print(
            f"{bench.name:14} {mode:10} {len(numbers):4} of {len(bench.operations)} operations, "
            f"survived {len(numbers) - len(failed)}, {seconds} s",
            flush=True,
        )
        for one in failed:
            print(f"    {one['at']:4} {one['on']}: {one['wrong']}", flush=True)
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--only", default="", help="commands whose name begins so; several with ; between"
    )
    parser.add_argument("--modes", default=",".join(MODES[1:]))
    parser.add_argument("--each", type=int, help="so many operations; by default all")
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    if SHIM not in os.environ:
        with tempfile.TemporaryDirectory() as folder:
            words = [sys.executable, *sys.argv]
            shim = shim_environment(build_shim(Path(folder)))
            sys.exit(os.spawnve(os.P_WAIT, sys.executable, words, shim))
    # Not a TemporaryDirectory: every fork would remove it at its end.
    scratch = Path(tempfile.mkdtemp()).resolve()
    modes, rows = asked.modes.split(","), []
    try:
        names = [name for name in COMMANDS if name.startswith(tuple(asked.only.split(";")))]
        warm_up(names, scratch)
        for name in names:
            rows.append(trials(Bench(name, scratch), modes, asked.each))
            if asked.json:
                found = {"each": asked.each, "commands": rows, **summed(rows, modes)}
                asked.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf8")
    finally:
        shutil.rmtree(scratch)
    counts = summed(rows, modes)
    for mode in modes:
        print(f"{mode}: {counts[mode]['survived']} of {counts[mode]['injected']} survived")
    sys.exit(int(any(one["survived"] < one["injected"] for one in counts.values())))


def summed(rows: list[dict[str, Any]], modes: list[str]) -> dict[str, dict[str, int]]:
    """The counts of all commands, by mode."""
    keys = ("injected", "survived")
    return {mode: {key: sum(row[mode][key] for row in rows) for key in keys} for mode in modes}


if __name__ == "__main__":
    main()
