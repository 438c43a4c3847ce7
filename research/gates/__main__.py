"""`python -m research.gates --data DIR --out DIR`: learn gates, fix heads, heal, judge."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from headcount.errors import UsageError
from research.settings import told

if TYPE_CHECKING:
    from .config import Config

HERE = Path(__file__).parent


def main() -> int:
    """Make the runs that are asked for; several at a time share a GPU."""
    given = _parser().parse_args()
    return told(lambda: _one(given) if given.one else _all(given))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="research.gates", description=__doc__)
    add = parser.add_argument
    add("--config", type=Path, default=HERE / "config.toml")
    add("--data", type=Path, default=os.environ.get("HEADCOUNT_DATA"), help="folder of corpora")
    add("--out", type=Path, required=True)
    add("--runs", nargs="+", help="names of runs; all when none is named")
    add("--parts", nargs="+", default=["dev"], help="dev, test, lohelp, pud")
    add("--roles", action="store_true", help="survey each encoder anew on the bundled sample")
    add("--device", default="cuda")
    add("--steps", type=int, help="other than the settings say")
    add("--at-once", type=int, default=3, help="runs at a time")
    add("--time-limit", type=float, default=1e9, help="seconds after which no run is begun")
    add("--start", help="another trained translator: a name or a folder that hc.load takes")
    add("--fit", type=float, help="seconds of training that a run's steps are cut to fit")
    add("--one", help=argparse.SUPPRESS)
    return parser


def _all(given: argparse.Namespace) -> None:
    from .prepare import prepared

    config = _settings(given)
    given.out.mkdir(parents=True, exist_ok=True)
    prepared(config, _folder(given.data), given.out, [], "cpu")
    names = given.runs or [plan.name for plan in config.runs]
    began = time.monotonic()

    def go(name: str) -> None:
        if (given.out / f"{name}.json").exists() or time.monotonic() - began > given.time_limit:
            print(f"{name}: left out", flush=True)
            return
        subprocess.run([sys.executable, "-m", "research.gates", *sys.argv[1:], "--one", name])

    with ThreadPoolExecutor(given.at_once) as pool:
        list(pool.map(go, names))


def _one(given: argparse.Namespace) -> None:
    from .learn import Run
    from .prepare import prepared

    config = _settings(given)
    if given.steps:
        short = given.steps / config.schedule.steps
        schedule = config.schedule
        config = replace(
            config,
            schedule=replace(
                schedule,
                steps=given.steps,
                gate_steps=int(schedule.gate_steps * short),
                price_from=int(schedule.price_from * short),
                ramp=int(schedule.ramp * short),
            ),
        )
    plans = {plan.name: plan for plan in config.runs}
    if given.one not in plans:
        raise UsageError(f"There is no run '{given.one}'; there are {', '.join(plans)}.")
    texts = prepared(config, _folder(given.data), given.out, given.parts, given.device)
    Run(config, plans[given.one], texts, given.out, given.device, given.fit).go()
    if given.roles:
        from .survivors import pruned, roles_left

        told = roles_left(pruned(given.out / given.one))
        (given.out / f"{given.one}.roles.json").write_text(json.dumps(told, indent=1) + "\n")


def _settings(given: argparse.Namespace) -> Config:
    from .config import read_settings

    config = read_settings(given.config)
    return replace(config, start=given.start) if given.start else config


def _folder(data: Path | None) -> Path:
    if data is None:
        raise UsageError("The corpora are needed: pass --data DIR, or set HEADCOUNT_DATA.")
    inner = Path(data) / "parallel"
    return inner if inner.is_dir() else Path(data)


if __name__ == "__main__":
    sys.exit(main())
