"""Replace every file of a run, unfinished ones included, and count what the next command does.

python tests/strangers [--only WORD] [--each N] [--json FILE]

A command of tests/kills is broken off at some operations, or not at all. Then each file and folder
that it left is replaced, one at a time: by a pickle that names a call, by a link to a canary with
the same content, by random bytes. The same command, and those that read what is there, must run
nothing of it, leave the canary as it was, and end well or with one sentence.
"""

from __future__ import annotations

import shutil
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from kills.commands import COMMANDS
from kills.harness import Bench, asked_for, run, scratch_folder, write_json
from strangers.folders import state_of_folder
from strangers.pickles import callables, containers, known_calls, naming

#: What else reads the folder that a command of this name writes.
READERS = {
    "run": [["ls", "run"], ["report", "run", "-o", "other.html"]],
    "changes": [["ls", "changes"]],
    "small": [["ls", "small/run"]],
    "atlas": [],
}
KINDS = ("pickle", "link", "bytes")


def watch(log: Path) -> None:
    """From here on, also in forks: every name that a pickle asks for is written down."""

    def heard(event: str, values: tuple[Any, ...]) -> None:
        if event == "pickle.find_class":
            with log.open("a") as file:
                file.write(".".join(map(str, values)) + "\n")

    sys.addaudithook(heard)


def replaced(target: Path, kind: str, scratch: Path, rng: Random, names: list[str]) -> str:
    """Put something else in the place of a file or folder; what a pickle there would call."""
    canary, name = scratch / "canary", ""
    if kind == "link":
        target.rename(canary / "theirs")
        target.symlink_to(canary / "theirs")
    elif kind == "bytes":
        target.write_bytes(rng.randbytes(rng.choice([1, 40, 4000])))
    else:
        name = rng.choice(names)
        calls = known_calls(canary / "mark")
        data = containers(calls[name]) if name in calls else naming(name)
        target.write_bytes(rng.choice(list(data.values())))
    return name


def wrong_with(ended: Any) -> str:
    """What is wrong with the end of a command; empty where it is as promised."""
    last = " / ".join(ended.said.strip().splitlines()[-3:])[-300:]
    if "Traceback" in ended.said:
        return f"a traceback: {last}"
    if ended.code not in (0, 1, 2):
        return f"ended with {ended.code}: {last}"
    if ended.code and sum(line.startswith("Error: ") for line in ended.said.splitlines()) != 1:
        return f"not one sentence: {last}"
    return ""


class Net:
    """All trials of one command."""

    def __init__(self, name: str, scratch: Path, log: Path, names: list[str]) -> None:
        self.bench, self.scratch, self.log, self.names = Bench(name, scratch), scratch, log, names
        self.rng = Random(name)
        self.counts: Counter[str] = Counter()
        self.failed: list[dict[str, str]] = []

    def states(self) -> Iterator[tuple[str, Path]]:
        """What the command leaves, whole and broken off at two operations."""
        count = len(self.bench.operations)
        for at in (0, round(count * 0.5), round(count * 0.9)):
            folder = self.bench._folder()
            run(folder, self.bench.command, "kill" if at else "count", at)
            kept = self.scratch / "state"
            shutil.rmtree(kept, ignore_errors=True)
            shutil.copytree(folder, kept, symlinks=True)
            yield ("whole" if not at else f"killed at {at} of {count}"), kept

    def left(self, state: Path) -> list[str]:
        """The files and folders that are no inputs."""
        paths = (path for path in state.rglob("*") if not path.is_symlink())
        names = (str(path.relative_to(state)) for path in paths)
        return sorted(name for name in names if name.split("/")[0] not in self.bench.names)

    def run(self, each: int | None) -> None:
        """As many trials as asked for, spread over states, files and kinds; by default all."""
        trials = [
            (state, name, kind)
            for state, kept in self.states()
            for name in self.left(kept)
            for kind in KINDS
            if (kept / name).is_file() or (kind == "link" and "/" in name)  # the user names the top
            if self.keep(state, kept)
        ]
        for state, name, kind in (
            trials if each is None else self.rng.sample(trials, min(each, len(trials)))
        ):
            self.trial(state, name, kind)

    def keep(self, state: str, kept: Path) -> bool:
        """Keep a state by its name."""
        place = self.scratch / "states" / state
        if not place.exists():
            shutil.copytree(kept, place, symlinks=True)
        return True

    def trial(self, state: str, name: str, kind: str) -> None:
        """One file replaced, then the same command and those that read."""
        folder, canary = self.scratch / "work", self.scratch / "canary"
        top = name.split("/")[0]
        commands = [self.bench.command, *READERS.get(top, [])]
        for command in commands:
            for path in (folder, canary):
                shutil.rmtree(path, ignore_errors=True)
            shutil.copytree(self.scratch / "states" / state, folder, symlinks=True)
            canary.mkdir()
            self.log.unlink(missing_ok=True)
            called = replaced(folder / name, kind, self.scratch, self.rng, self.names)
            before = state_of_folder(canary)
            ended = run(folder, command)
            heard = self.log.read_text().split() if self.log.exists() else []
            wrong = wrong_with(ended)
            if called in heard:
                wrong, self.counts["code run"] = "code was run", self.counts["code run"] + 1
            if state_of_folder(canary) != before:
                wrong, self.counts["canary"] = "the canary changed", self.counts["canary"] + 1
            self.counts["tried"] += 1
            self.counts["refused" if ended.code else "read"] += 1
            self.counts["held"] += not wrong
            if wrong:
                self.failed.append(
                    {
                        "state": state,
                        "file": name,
                        "kind": kind,
                        "verb": " ".join(command),
                        "wrong": wrong,
                    }
                )
                print(f"    {state}, {name} as {kind}, {command[0]}: {wrong}", flush=True)


def main() -> None:
    asked = asked_for(__doc__ or "", COMMANDS)
    rows = []
    with scratch_folder(asked.names) as scratch:
        names = [*known_calls(scratch / "mark"), *callables("numpy"), *callables("collections")]
        names += callables("headcount")
        log = scratch / "heard"
        watch(log)
        for name in asked.names:
            shutil.rmtree(scratch / "states", ignore_errors=True)
            net = Net(name, scratch, log, names)
            net.run(asked.each)
            rows.append({"command": name, **net.counts, "failed": net.failed})
            print(f"{name:14} {dict(net.counts)}", flush=True)
            found = {"each": asked.each, "callables": len(names), "commands": rows}
            write_json(asked.json, found)
    total = sum(
        (Counter({k: v for k, v in row.items() if isinstance(v, int)}) for row in rows), Counter()
    )
    print(
        f"tried {total['tried']}, held {total['held']}, code run {total['code run']}, "
        f"canary touched {total['canary']}"
    )
    sys.exit(int(total["held"] < total["tried"]))


if __name__ == "__main__":
    main()
