"""`python -m research.glue --data DIR`: fine-tune, judge, write research/results/glue.json."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from headcount.errors import UsageError
from research import RESULTS, ROOT
from research.settings import told

HERE = Path(__file__).parent


def main(arguments: list[str] | None = None) -> int:
    """Make the runs that are missing and sum up all of them; a mistake is told in a sentence."""
    given = _parser().parse_args(arguments)
    return told(lambda: _run(given))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="research.glue", description=__doc__)
    add = parser.add_argument
    add("--config", type=Path, default=HERE / "config.toml")
    add("--data", type=Path, default=os.environ.get("HEADCOUNT_DATA"), help="folder with glue/")
    add("--tasks", nargs="+", help="fewer tasks")
    add("--models", nargs="+", help="other models: names or paths that hc.load takes")
    add("--seeds", type=int, help="how many, from 0")
    add("--init", help="what learning starts from: pretrained, random (all weights), or frozen")
    add("--device", default="auto")
    add("--out", type=Path, default=RESULTS / "glue.json")
    add("--journal", type=Path, default=ROOT / "run" / "glue.jsonl", help="finished runs, kept")
    add("--save", type=Path, help="write each fine-tuned model into this folder")
    add("--time-limit", type=float, help="seconds after which no further run is begun")
    add("--eager", action="store_true", help="do not record steps as CUDA graphs")
    add("--train-only", action="store_true", help="leave summing up to a later call")
    add("--note", action="append", default=[], help="a sentence for the JSON")
    return parser


def _run(given: argparse.Namespace) -> None:
    # Read when the first product is computed on a GPU; without it cuBLAS may differ by a bit.
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    from headcount.models.loading import pick_device
    from headcount.records.journal import Journal

    from .config import choose, read_config
    from .sweep import Sweep, fingerprint

    config = read_config(given.config)
    config = choose(config, None, None, None, given.init)
    config, asked = choose(config, given.tasks, given.models, given.seeds), fingerprint(config)
    data = None if config.toy else _glue(given.data)
    given.journal.parent.mkdir(parents=True, exist_ok=True)
    with Journal.open(given.journal, asked) as journal:
        device = str(pick_device(given.device))
        sweep = Sweep(config, data, device, save=given.save, record=not given.eager)
        sweep.go(journal, given.time_limit)
    if not given.train_only:
        from .summary import write_summary

        write_summary(given.out, config, journal.done, given.note)


def _glue(folder: Path | None) -> Path:
    if folder is None:
        raise UsageError("The GLUE files are needed: pass --data DIR, or set HEADCOUNT_DATA.")
    inner = Path(folder) / "glue"
    return inner if inner.is_dir() else Path(folder)


if __name__ == "__main__":
    sys.exit(main())
