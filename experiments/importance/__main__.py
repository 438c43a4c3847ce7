"""`python -m experiments.importance --data DIR --classifiers DIR`: docs/results/importance.json."""

from __future__ import annotations

import argparse
import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

from headcount.records.files import to_strict

from .cases import read_cases
from .draw import draw
from .findings import agreements, findings, over_training
from .measure import Measured, measured

HERE = Path(__file__).parent
RESULTS = HERE.parent.parent / "docs" / "results"
DYNAMICS = HERE.parent / "translator" / "results"
COMMAND = "python -m experiments.importance"


def main() -> None:
    parser = argparse.ArgumentParser(prog="experiments.importance", description=__doc__)
    parser.add_argument("--data", type=Path, default=os.environ.get("HEADCOUNT_DATA"))
    parser.add_argument("--classifiers", type=Path, help="what experiments.glue --save wrote")
    parser.add_argument("--work", type=Path, default=Path("run/importance"), help="finished tables")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--limit", type=int, help="so many examples at most, for a trial")
    parser.add_argument("--only", nargs="+", help="names of cases; what is known of others stays")
    given = parser.parse_args()
    if given.data is None:
        parser.error("say where the corpora are: --data DIR, or set HEADCOUNT_DATA")
    config, cases = read_cases(given.limit)
    groups: dict[str, dict[str, Measured]] = {"translator": {}, "classifiers": {}}
    path = given.out / "importance.json"
    known = json.loads(path.read_text()) if given.only and path.exists() else {}
    told: dict[str, Any] = {"config": config, "command": COMMAND}
    told["cases"] = known.get("cases", {})
    for case in cases:
        if given.only and case.name not in given.only:
            continue
        tables = measured(case, Path(given.data), given.classifiers, given.work)
        groups[case.group][case.name] = tables
        told["cases"][case.name] = findings(case, tables)
    wanted = Counter(case.group for case in cases)
    told["agreement"] = known.get("agreement", {}) | {
        group: agreements(tables).to_dict("records")
        for group, tables in groups.items()
        if len(tables) == wanted[group]
    }
    told["over training"] = {
        run: over_training(DYNAMICS / run / "dynamics.json") for run in ("en-de", "en-ru")
    }
    given.out.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(to_strict(told), indent=1) + "\n")
    draw(given.out, given.out)


if __name__ == "__main__":
    main()
