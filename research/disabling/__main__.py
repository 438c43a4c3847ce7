"""`python -m research.disabling --data DIR --classifiers DIR`: heads and layers disabled."""

from __future__ import annotations

import argparse
import json
import os
import tomllib
from pathlib import Path
from typing import Any

from headcount.records.files import to_strict
from research import RESULTS, pages_of

from .draw import draw
from .findings import findings
from .measure import classifier, swept

HERE = Path(__file__).parent
COMMAND = "python -m research.disabling"


def main() -> None:
    parser = argparse.ArgumentParser(prog="research.disabling", description=__doc__)
    parser.add_argument("--data", type=Path, default=os.environ.get("HEADCOUNT_DATA"))
    parser.add_argument("--classifiers", type=Path, help="what research.glue --save wrote")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--work", type=Path, default=Path("run/disabling"), help="journals")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--limit", type=int, help="so many examples at most, for a trial")
    parser.add_argument("--only", nargs="+", help="tasks by name; all when none is named")
    given = parser.parse_args()
    if given.data is None or given.classifiers is None:
        parser.error("say where the corpora and the classifiers are: --data DIR --classifiers DIR")
    config = tomllib.loads((HERE / "config.toml").read_text())
    told: dict[str, Any] = {"config": config, "command": COMMAND, "tasks": {}}
    for task, model in config["tasks"].items():
        if given.only and task not in given.only:
            continue
        subject = classifier(given.classifiers, model, given.device)
        found = swept(subject, task, Path(given.data), config, given.work, given.limit)
        about = {"model": model, "weights": subject.weights_hash, "data": found.task.hash}
        told["tasks"][task] = about | findings(found, config)
        _tell(task, told["tasks"][task], config["modes"])
    given.out.mkdir(parents=True, exist_ok=True)
    place = given.out / "together-disabling.json"
    place.write_text(json.dumps(to_strict(told), indent=1) + "\n")
    draw(given.out, pages_of(given.out))


def _tell(task: str, found: dict[str, Any], modes: list[str]) -> None:
    """A line for each mode and unit."""
    for unit in ("head", "layer"):
        for mode in modes:
            part = found[f"{unit} {mode}"]
            small = "  too small to tell" if part["too small"] else ""
            print(
                f"{task} {unit} {mode}: best {part['best on all of dev']['gain']:+.4f} on the same "
                f"examples, {part['mean gain on the other half']:+.4f} on the other half, least "
                f"detectable there {part['detectable on the other half']:.4f}{small}",
                flush=True,
            )


if __name__ == "__main__":
    main()
