"""`python -m experiments [--jobs N]`: measure every page of docs/results that needs no GPU again.

Parts run side by side, one a core, and each says how many minutes it took; the page of findings
comes last, when all are done.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

#: The longest first.
EXPERIMENTS = (
    "experiments.roles",
    "experiments.surface",
    "experiments.roles.antecedents",
    "experiments.probes",
    "experiments.verdicts",
    "experiments.rules",
    "experiments.translator.bundled",
)
LAST = "experiments.findings"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="experiments", description=__doc__)
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="parts at a time")
    given = parser.parse_args(arguments)
    began = time.monotonic()
    with ThreadPoolExecutor(given.jobs) as pool:
        failed = [
            name for name, code in zip(EXPERIMENTS, pool.map(run, EXPERIMENTS), strict=True) if code
        ]
    failed += [LAST] if run(LAST) else []
    print(f"all: {(time.monotonic() - began) / 60:.1f} minutes", flush=True)
    if failed:
        print(f"error: {', '.join(failed)} failed; what they said is above.", file=sys.stderr)
    return min(len(failed), 1)


def run(name: str) -> int:
    """One part in a process of its own, on one core; its exit code."""
    began = time.monotonic()
    print(f"{name} ...", flush=True)
    threads = {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
    done = subprocess.run([sys.executable, "-m", name], env=os.environ | threads)
    print(f"{name}: {(time.monotonic() - began) / 60:.1f} minutes", flush=True)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
