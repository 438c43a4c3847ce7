"""`python -m experiments`: measure every page of docs/results that needs no GPU again."""

from __future__ import annotations

import runpy
import sys

EXPERIMENTS = (
    "experiments.surface",
    "experiments.roles",
    "experiments.probes",
    "experiments.translator.bundled",
    "experiments.rules",
    "experiments.verdicts",
    "experiments.findings",
)


def main() -> None:
    for name in EXPERIMENTS:
        print(f"{name} ...", flush=True)
        sys.argv = [name]
        runpy.run_module(name, run_name="__main__")


if __name__ == "__main__":
    main()
