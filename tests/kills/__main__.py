"""Break commands off at every file operation, and count how many reruns end the same.

python tests/kills [--only WORD] [--modes kill,torn,full,read-only,interrupt] [--each N]

With --each N only N operations of each command and mode, spread evenly. Linux and a C compiler.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from kills.commands import COMMANDS
from kills.harness import ANYTIME, MODES, Bench, asked_for, scratch_folder, write_json


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
    asked = asked_for(__doc__ or "", COMMANDS, modes={"default": ",".join(MODES[1:])})
    modes, rows = asked.modes.split(","), []
    with scratch_folder(asked.names) as scratch:
        for name in asked.names:
            rows.append(trials(Bench(name, scratch), modes, asked.each))
            write_json(asked.json, {"each": asked.each, "commands": rows, **summed(rows, modes)})
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
