"""`python -m research [--all] [--skip PART ...] [--jobs N]`: measure docs/results again.

What needs neither a GPU nor a model that has to be trained first. Parts run side by side, one a
core; the list with the minutes of each is printed before the first begins (`--list`: the list
alone), each says how many minutes it took, and the page of findings comes last, when all are done.
Without `--all` those that would not fit into an hour of two cores are left as they are. How many
minutes of a core each part takes is in research/results/reproduce.json: a run in which nothing
failed writes what it measured, `--estimate` measures a small share of every part and multiplies.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from research import RESULTS, pages_of
from research.pages import with_tables

LAST = "research.findings"
#: What lies here is not measured again: surveys of roles, tables of scores, a report's run.
WORK = (Path("run/roles"), Path("run/importance"), Path("run/function"))


@dataclass(frozen=True)
class Part:
    """One command, and a share of its work small enough to time: what is asked for, of how much."""

    module: str
    trial: str
    times: float
    #: Only with `--all`.
    long: bool = False
    #: Writes nothing but `--out`.
    out: str = ""
    #: What the command says besides its module.
    words: str = ""
    #: The option that names the folder of finished work, which a trial must not find.
    work: str = ""
    #: A file that the command keeps parts of, so a trial must find it.
    known: str = ""
    #: Reads what these parts write, or writes the same file, so it waits for them.
    after: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """What is typed behind `python -m`."""
        return f"{self.module} {self.words}".strip()


def _of_the_surveys(one: str) -> float:
    """How many times as long as one survey of roles all of them took, by their own clocks."""
    files = (RESULTS / "roles").glob("*.json")
    took = {path.stem: json.loads(path.read_text(encoding="utf8")) for path in files}
    trained = ("en-ru", "translator-lohelp")
    whole = sum(d["seconds"] for d in took.values() if d["plan"]["model"] not in trained)
    return float(whole / took[one]["seconds"])


def _of_the_examples(limit: int) -> float:
    """How many times as many examples as a trial's both cases of the translator have."""
    file = Path(__file__).parent / "importance" / "config.toml"
    cases = tomllib.loads(file.read_text(encoding="utf8"))["translator"].values()
    return float(sum(case["examples"] for case in cases) / (limit * len(cases)))


_IMPORTANCE = "research.importance --only tatoeba lohelp"
_STACKS = "--device cpu --rank 256 --choose 48 --judge 120 --step 20 --longest 48 --sixty 600"

#: The longest first; a part stands behind the one it waits for.
PARTS = (
    Part(
        "research.roles", "--only minilm-stanford", _of_the_surveys("minilm-stanford"),
        work="--parts",
    ),
    Part(
        "research.importance", "--limit 4", _of_the_examples(4), long=True,
        words="--only tatoeba lohelp", work="--work",
    ),
    Part("research.probes", "--sentences 100", 40, long=True),
    Part(
        "research.stacks", "--rank 16 --choose 4 --judge 8 --sixty 40", 15, long=True,
        out="pruning-by-stack.json", words=_STACKS,
    ),
    Part("research.surface", "--pairs 20", 50),
    Part("research.roles.antecedents", "--limit 100", 1617 / 100, out="antecedents.json"),
    Part("research.orders", "--limit 16", 271 / 16, long=True),
    Part(
        "research.verdicts.function", "--limit 12", 271 / 12, long=True, out="function.json",
        work="--work",
    ),
    Part("research.translator.bundled", "--limit 24", 2771 / 48),
    Part(
        "research.rules", "--examples 2", 12, out="relevance-rules.json",
        after=(_IMPORTANCE,),
    ),
    # By the weights of all four models beside MiniLM's.
    Part("research.verdicts", "--models minilm", 15, out="verdicts.json"),
    Part("research.confidence", "--models minilm", 15, long=True, out="confidence.json"),
    Part(
        "research.confidence", "--limit 10", _of_the_examples(10), long=True,
        out="confidence.json", words="--relevance --only tatoeba lohelp",
        after=(_IMPORTANCE, "research.confidence"),
    ),
    Part("research.together", "--texts 15", 20, long=True, words="families"),
    Part("research.patterns", "", 1, long=True, known="together-patterns.json"),
)  # fmt: skip


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="research", description=__doc__)
    parser.add_argument("--all", action="store_true", help="also the parts beyond the hour")
    parser.add_argument("--skip", nargs="+", default=[], metavar="PART", help="leave these out")
    parser.add_argument("--list", action="store_true", help="say what would run, and stop")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="parts at a time")
    parser.add_argument("--estimate", nargs="*", metavar="PART", help="time a share of each part")
    parser.add_argument("--table", action="store_true", help="write the table of minutes alone")
    given = parser.parse_args(arguments)
    named = given.skip + (given.estimate or [])
    for name in named:
        if name not in {word for part in PARTS for word in (part.name, part.module)}:
            parser.error(f"there is no part '{name}'; there is {', '.join(p.name for p in PARTS)}")
    if given.table or given.estimate is not None:
        if given.estimate is not None:
            estimate(given.estimate or [part.name for part in PARTS])
        tell(_known())
        return 0
    wanted = [part for part in PARTS if given.all or not part.long]
    wanted = [part for part in wanted if not {part.name, part.module} & set(given.skip)]
    print(*planned(wanted, _known()), sep="\n", flush=True)
    if given.list:
        return 0
    began, done = time.monotonic(), [str(place) for place in WORK if any(place.glob("*"))]
    ran = _run_all(wanted, given.jobs)
    minutes = (time.monotonic() - began) / 60
    print(f"all: {minutes:.1f} minutes", flush=True)
    failed = [name for name, (code, _) in ran.items() if code]
    if failed:
        print(f"error: {', '.join(failed)} failed; what they said is above.", file=sys.stderr)
        return 1
    if done:
        print(f"{', '.join(done)} held work from before, so the minutes are not written down.")
        return 0
    if given.skip:
        print("Parts were skipped, so the minutes are not written down.")
        return 0
    cores = {name: round(core / 60, 1) for name, (_, core) in ran.items()}
    whole = {"day": time.strftime("%Y-%m-%d"), "jobs": given.jobs}
    whole |= {"clock_minutes": round(minutes, 1), "core_minutes": cores}
    tell(_known() | {"whole": whole})
    return 0


def planned(parts: Sequence[Part], told: dict[str, Any]) -> list[str]:
    """A line a part: its command, and how many minutes of a core it took, or is thought to take."""
    lines = []
    for part in parts:
        measured = told.get("whole", {}).get("core_minutes", {}).get(part.name)
        guess = told.get("parts", {}).get(part.name, {}).get("core_minutes")
        minutes = "nobody knows how many minutes" if guess is None else f"about {guess:.0f} minutes"
        minutes = minutes if measured is None else f"{measured:.0f} minutes"
        lines.append(f"python -m {part.name}: {minutes} of a core")
    return lines


def _run_all(parts: Sequence[Part], jobs: int | None) -> dict[str, tuple[int, float]]:
    """Every part, and the page of findings at the end: exit codes and seconds of a core."""
    begun: dict[str, Future[tuple[int, float]]] = {}

    def one(part: Part) -> tuple[int, float]:
        for name in part.after:
            if name in begun:  # begun before, so it runs or is done
                begun[name].result()
        return run(part.name)

    with ThreadPoolExecutor(jobs) as pool:
        for part in parts:
            begun[part.name] = pool.submit(one, part)
    return {name: each.result() for name, each in begun.items()} | {LAST: run(LAST)}


def run(name: str, *more: str) -> tuple[int, float]:
    """One part in a process of its own, on one core: its exit code, and seconds of that core."""
    began, words = time.monotonic(), [*name.split(), *more]
    print(f"{name} ...", flush=True)
    threads = {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
    # wait4 tells the seconds of this one child; its own wait would take them away.
    child = subprocess.Popen([sys.executable, "-m", *words], env=os.environ | threads)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    core = usage.ru_utime + usage.ru_stime
    minutes = (time.monotonic() - began) / 60
    print(f"{name}: {minutes:.1f} minutes, {core / 60:.1f} of a core", flush=True)
    return child.returncode, core


def _known() -> dict[str, Any]:
    file = RESULTS / "reproduce.json"
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf8")) if file.exists() else {}
    return found


def estimate(names: list[str]) -> None:
    """Time the trial of each part that is named; what is known of others stays."""
    for part in PARTS:
        if not {part.name, part.module} & set(names):
            continue
        with tempfile.TemporaryDirectory() as folder:
            if part.known:
                shutil.copy(RESULTS / part.known, folder)
            words = [*part.trial.split(), "--out", str(Path(folder) / part.out)]
            words += [part.work, str(Path(folder) / "work")] if part.work else []
            code, core = run(part.name, *words)
        if code:
            raise SystemExit(f"error: the trial of {part.name} failed; what it said is above.")
        # Read now: another estimate may have written meanwhile.
        told = _known() | {"command": "python -m research --estimate"}
        told.setdefault("parts", {})[part.name] = {
            "trial": part.trial,
            "trial_core_seconds": round(core, 1),
            "times": round(part.times, 1),
            "core_minutes": round(core * part.times / 60, 1),
        }
        tell(told)


def tell(told: dict[str, Any]) -> None:
    """Write the file of minutes, and the table of the page."""
    (RESULTS / "reproduce.json").write_text(json.dumps(told, indent=1) + "\n", encoding="utf8")
    page = pages_of(RESULTS) / "README.md"
    page.write_text(filled(page.read_text(encoding="utf8"), told), encoding="utf8")


def filled(page: str, told: dict[str, Any]) -> str:
    """The page with the table of minutes: measured on a whole run, and estimated."""
    whole = told["whole"]
    lines = [["part", "minutes of a core", "estimated", "by a share of it", "in the hour"]]
    lines.append(["---", "--:", "--:", "---", "---"])
    for part in PARTS:
        one = told["parts"].get(part.name)
        if one is None:  # in the midst of an estimate of all
            continue
        measured = whole["core_minutes"].get(part.name)
        minutes = "–" if measured is None else f"{measured:.1f}"
        share = f"`{one['trial']}`, times {one['times']:g}" if one["trial"] else "all of it"
        fits = "with `ALL=--all`" if part.long else "yes"
        command = f"`python -m {part.name}`"
        lines.append([command, minutes, f"{one['core_minutes']:.0f}", share, fits])
    jobs = f"{whole['jobs']} parts at a time, {whole['day']}"
    clocks = f"{clock(told):.0f} on two cores, with the rest {clock(told, long=True):.0f}"
    lines.append(["all, by the clock", f"{whole['clock_minutes']:.1f}, {jobs}", clocks, "", ""])
    rows = [f"| {' | '.join(line)} |" for line in lines]
    return with_tables(page, {"minutes": "\n".join(rows)}.__getitem__)


def clock(told: dict[str, Any], cores: int = 2, long: bool = False) -> float:
    """Estimated minutes until the last part ends, each begun by the core that is free first."""
    free = [0.0] * cores
    for part in PARTS:
        if part.name in told["parts"] and (long or not part.long):
            free.sort()
            free[0] += told["parts"][part.name]["core_minutes"]
    return max(free)


if __name__ == "__main__":
    sys.exit(main())
