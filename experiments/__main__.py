"""`python -m experiments [--all] [--jobs N]`: measure docs/results again, what needs no GPU.

Parts run side by side, one a core, and each says how many minutes it took; the page of findings
comes last, when all are done. Without `--all` those that take longest are left as they are, so that
two cores are done within an hour. How many minutes of a core each part takes is in
docs/results/reproduce.json: a run in which nothing failed writes what it measured, `--estimate`
measures a small share of every part and multiplies.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments.pages import with_tables

RESULTS = Path(__file__).parent.parent / "docs" / "results"
LAST = "experiments.findings"
#: Surveys of roles that lie here are not made again.
SURVEYS = Path("run/roles")


@dataclass(frozen=True)
class Part:
    """One command, and a share of its work small enough to time: what is asked for, of how much."""

    name: str
    trial: str
    times: float
    #: Only with `--all`.
    long: bool = False
    #: Writes nothing but `--out`.
    out: str = ""


def _of_the_surveys(one: str) -> float:
    """How many times as long as one survey of roles all of them took, by their own clocks."""
    files = (RESULTS / "roles").glob("*.json")
    took = {path.stem: json.loads(path.read_text(encoding="utf8")) for path in files}
    trained = ("en-ru", "translator-lohelp")
    whole = sum(d["seconds"] for d in took.values() if d["plan"]["model"] not in trained)
    return float(whole / took[one]["seconds"])


#: The longest first.
PARTS = (
    Part("experiments.roles", "--only minilm-stanford", _of_the_surveys("minilm-stanford")),
    Part("experiments.probes", "--sentences 100", 40, long=True),
    Part("experiments.surface", "--pairs 20", 50),
    Part("experiments.roles.antecedents", "--limit 100", 1617 / 100, out="antecedents.json"),
    Part("experiments.translator.bundled", "--limit 24", 2771 / 48),
    Part("experiments.rules", "--examples 2", 12, out="relevance-rules.json"),
    # By the weights of all four models beside MiniLM's.
    Part("experiments.verdicts", "--models minilm", 15, out="verdicts.json"),
)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="experiments", description=__doc__)
    parser.add_argument("--all", action="store_true", help="also the parts that take hours")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="parts at a time")
    parser.add_argument("--estimate", nargs="*", metavar="PART", help="time a share of each part")
    parser.add_argument("--table", action="store_true", help="write the table of minutes alone")
    given = parser.parse_args(arguments)
    if given.table or given.estimate is not None:
        if given.estimate is not None:
            estimate(given.estimate or [part.name for part in PARTS])
        tell(_known())
        return 0
    began, done = time.monotonic(), any(SURVEYS.glob("*.json"))
    wanted = [part.name for part in PARTS if given.all or not part.long]
    with ThreadPoolExecutor(given.jobs) as pool:
        ran = dict(zip(wanted, pool.map(run, wanted), strict=True))
    ran[LAST] = run(LAST)
    minutes = (time.monotonic() - began) / 60
    print(f"all: {minutes:.1f} minutes", flush=True)
    failed = [name for name, (code, _) in ran.items() if code]
    if failed:
        print(f"error: {', '.join(failed)} failed; what they said is above.", file=sys.stderr)
        return 1
    if done:
        print(f"{SURVEYS} held surveys from before, so the minutes are not written down.")
        return 0
    cores = {name: round(core / 60, 1) for name, (_, core) in ran.items()}
    whole = {"day": time.strftime("%Y-%m-%d"), "jobs": given.jobs}
    whole |= {"clock_minutes": round(minutes, 1), "core_minutes": cores}
    tell(_known() | {"whole": whole})
    return 0


def run(name: str, *more: str) -> tuple[int, float]:
    """One part in a process of its own, on one core: its exit code, and seconds of that core."""
    began = time.monotonic()
    print(f"{name} ...", flush=True)
    threads = {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
    # wait4 tells the seconds of this one child; its own wait would take them away.
    child = subprocess.Popen([sys.executable, "-m", name, *more], env=os.environ | threads)
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
    told = _known() | {"command": "python -m experiments --estimate"}
    for part in PARTS:
        if part.name not in names:
            continue
        with tempfile.TemporaryDirectory() as folder:
            words = [*part.trial.split(), "--out", str(Path(folder) / part.out)]
            words += ["--parts", folder] if part.name == "experiments.roles" else []
            code, core = run(part.name, *words)
        if code:
            raise SystemExit(f"error: the trial of {part.name} failed; what it said is above.")
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
    page = RESULTS / "README.md"
    page.write_text(filled(page.read_text(encoding="utf8"), told), encoding="utf8")


def filled(page: str, told: dict[str, Any]) -> str:
    """The page with the table of minutes: measured on a whole run, and estimated."""
    whole = told["whole"]
    lines = [["part", "minutes of a core", "estimated", "by a share of it", "in the hour"]]
    lines.append(["---", "--:", "--:", "---", "---"])
    for part in PARTS:
        one, measured = told["parts"][part.name], whole["core_minutes"].get(part.name)
        minutes = "–" if measured is None else f"{measured:.1f}"
        share = f"`{one['trial']}`, times {one['times']:g}"
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
        if long or not part.long:
            free.sort()
            free[0] += told["parts"][part.name]["core_minutes"]
    return max(free)


if __name__ == "__main__":
    sys.exit(main())
