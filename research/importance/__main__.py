"""`python -m research.importance --data DIR --classifiers DIR`: research/results/importance.json.

Its figures and the tables of importance.md follow.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any

from headcount.records.files import to_strict
from research import RESULTS, pages_of

from .cases import read_cases
from .draw import draw
from .findings import again, agreements, findings, over_training
from .measure import measured
from .page import filled

HERE = Path(__file__).parent
DYNAMICS = HERE.parent / "translator" / "results"
COMMAND = "python -m research.importance"


def main() -> None:
    parser = argparse.ArgumentParser(prog="research.importance", description=__doc__)
    parser.add_argument("--data", type=Path, default=os.environ.get("HEADCOUNT_DATA"))
    parser.add_argument("--classifiers", type=Path, help="what research.glue --save wrote")
    parser.add_argument("--work", type=Path, default=Path("run/importance"), help="finished tables")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--limit", type=int, help="so many examples at most, for a trial")
    parser.add_argument("--only", nargs="+", help="names of cases; what is known of others stays")
    parser.add_argument(
        "--again", action="store_true", help="the loss without each head alone; the rest is known"
    )
    given = parser.parse_args()
    if given.data is None:
        parser.error("say where the corpora are: --data DIR, or set HEADCOUNT_DATA")
    config, cases = read_cases(given.limit)
    path = given.out / "importance.json"
    some = given.only or given.again
    known = json.loads(path.read_text()) if some and path.exists() else {}
    told: dict[str, Any] = {"config": config, "command": COMMAND}
    told["cases"] = known.get("cases", {})
    asked = [case for case in cases if not given.only or case.name in given.only]
    for case in asked:
        before = told["cases"].get(case.name) if given.again else None
        tables = measured(case, Path(given.data), given.classifiers, given.work, again=bool(before))
        found = again(case, tables, before) if before else findings(case, tables)
        told["cases"][case.name] = found
    told["agreement"] = known.get("agreement", {})
    for group in {case.group for case in asked}:
        own = [case.name for case in cases if case.group == group and case.name in told["cases"]]
        shown = {name: told["cases"][name] for name in own}
        told["agreement"][group] = agreements(shown).to_dict("records")
    told["over training"] = {
        run: over_training(DYNAMICS / run / "dynamics.json") for run in ("en-de", "en-ru")
    }
    given.out.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(to_strict(told), indent=1) + "\n")
    draw(given.out, pages_of(given.out))
    page = pages_of(given.out) / "importance.md"
    if page.exists():
        page.write_text(filled(page.read_text(encoding="utf8"), told), encoding="utf8")


if __name__ == "__main__":
    main()
