"""Read damaged files until the time is up, and count what came of them.

python tests/fuzz [--seconds 600] [--seed 0] [--only WORD] [--json FILE]

Every reader of headcount gets sound files, of which one is damaged: bytes flipped, cut off, lines
and cells lost or doubled, odd values, brackets in brackets. It must read, or refuse in one sentence
that names the file, within bounds of time and memory; everything else counts as a crash and is
listed with the seed that brings it back. Each reader runs in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from fuzz.damage import damaged
from fuzz.targets import Target, targets
from fuzz.trial import Trial, limit_memory, try_out


def fuzz(target: Target, seconds: float, seed: int) -> dict[str, Any]:
    """What came of as many inputs as fit into the time."""
    ended: Counter[str] = Counter()
    crashes: dict[str, dict[str, Any]] = {}
    slowest = most = 0.0
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        target.make(folder)
        sound = target.unpack((folder / target.file).read_bytes())
        first = try_out(target, folder, sound)
        if first.ended != "read":
            crashes["sound"] = {"why": f"the sound file: {first.why}", "seed": None, "times": 1}
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            trial, seed = _trial(target, folder, sound, seed)
            ended[trial.ended] += 1
            slowest, most = max(slowest, trial.seconds), max(most, trial.megabytes)
            if trial.why:
                known = crashes.setdefault(
                    trial.why[:120], {"why": trial.why, "seed": seed - 1, "times": 0}
                )
                known["times"] += 1
    return {
        "reader": target.name,
        "tried": ended.total(),
        "read": ended["read"],
        "refused": ended["refused"],
        "crashes": ended["crash"] + ("sound" in crashes),
        "slowest_seconds": round(slowest, 3),
        "most_megabytes": round(most, 1),
        "kinds_of_crashes": list(crashes.values()),
    }


def _trial(target: Target, folder: Path, sound: bytes, seed: int) -> tuple[Trial, int]:
    data = damaged(sound, Random(f"{target.name} {seed}"), text=target.text)
    return try_out(target, folder, data), seed + 1


def _apart(target: Target, seconds: float, seed: int, results: Any) -> None:
    """In a process of its own, with a limit, and silent: libraries complain as they please."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    limit_memory()
    results.send(fuzz(target, seconds, seed))


def fuzz_apart(target: Target, seconds: float, seed: int) -> dict[str, Any]:
    """The same from a fork, whose death is a crash as well."""
    fork = multiprocessing.get_context("fork")
    ours, theirs = fork.Pipe()
    child = fork.Process(target=_apart, args=(target, seconds, seed, theirs))
    child.start()
    theirs.close()
    try:
        found: dict[str, Any] = ours.recv()
    except EOFError:
        child.join()
        why = f"the process ended with {child.exitcode}"
        return {
            "reader": target.name,
            **dict.fromkeys(("tried", "read", "refused", "slowest_seconds", "most_megabytes"), 0),
            "crashes": 1,
            "kinds_of_crashes": [{"why": why, "seed": None, "times": 1}],
        }
    child.join()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=600, help="for all readers together")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="readers whose name holds this word")
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    chosen = [target for target in targets() if asked.only in target.name]
    began = time.monotonic()
    rows = []
    for target in chosen:
        rows.append(fuzz_apart(target, asked.seconds / len(chosen), asked.seed))
        row = rows[-1]
        print(
            f"{row['reader']:32} tried {row['tried']:6,}  read {row['read']:6,}  "
            f"refused {row['refused']:6,}  crashes {row['crashes']:4,}  "
            f"slowest {row['slowest_seconds']:6.2f} s  memory {row['most_megabytes']:6.1f} MB",
            flush=True,
        )
        for kind in row["kinds_of_crashes"]:
            print(f"    {kind['times']:4} x, seed {kind['seed']}: {kind['why']}", flush=True)
    numbers = ("tried", "read", "refused", "crashes")
    found = {
        "seconds": round(time.monotonic() - began),
        "seed": asked.seed,
        **{name: sum(row[name] for row in rows) for name in numbers},
        "slowest_seconds": max(row["slowest_seconds"] for row in rows),
        "most_megabytes": max(row["most_megabytes"] for row in rows),
        "readers": rows,
    }
    total = ", ".join(f"{found[name]:,} {name}" for name in numbers)
    print(f"{len(rows)} readers: {total} in {found['seconds']} s")
    if asked.json:
        asked.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf8")
    sys.exit(1 if found["crashes"] else 0)


if __name__ == "__main__":
    main()
