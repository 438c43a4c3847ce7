"""Break commands off at every file operation, and count how many reruns end the same.

python tests/kills [--only WORD] [--modes kill,torn,full,read-only] [--each N] [--json FILE]

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
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from kills.commands import COMMANDS
from kills.harness import MODES, SHIM, Bench, build_shim, shim_environment, warm_up


def chosen(operations: list[str], mode: str, each: int | None) -> list[int]:
    """The operations to break off at, counting from 1."""
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
                failed.append({"at": number, "on": bench.operations[number - 1], "wrong": wrong})
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
    try:
        names = [name for name in COMMANDS if name.startswith(tuple(asked.only.split(";")))]
        warm_up(names, scratch)
        rows = [trials(Bench(name, scratch), asked.modes.split(","), asked.each) for name in names]
    finally:
        shutil.rmtree(scratch)
    found: dict[str, Any] = {"commands": rows}
    for mode in asked.modes.split(","):
        counts = {key: sum(row[mode][key] for row in rows) for key in ("injected", "survived")}
        found[mode] = counts
        print(f"{mode}: {counts['survived']} of {counts['injected']} survived")
    if asked.json:
        asked.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf8")
    lost = sum(found[mode]["injected"] - found[mode]["survived"] for mode in asked.modes.split(","))
    sys.exit(1 if lost else 0)


if __name__ == "__main__":
    main()
