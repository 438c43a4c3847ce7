"""`python -m experiments.roles --data DIR --translators DIR`: writes docs/results/roles.json."""

from __future__ import annotations

import argparse
import json
import os
import tomllib
from pathlib import Path

from headcount.atomic import write_bytes

from .measure import measured

HERE = Path(__file__).parent
RESULTS = HERE.parent.parent / "docs" / "results"


def main() -> None:
    """Make the surveys that are missing, each kept as it ends; then join them."""
    parser = argparse.ArgumentParser(prog="experiments.roles", description=__doc__)
    parser.add_argument("--data", type=Path, default=os.environ.get("HEADCOUNT_DATA"))
    parser.add_argument("--translators", type=Path, help="the folder that holds en-ru")
    parser.add_argument("--only", nargs="+", help="names of surveys; all when none is named")
    parser.add_argument("--parts", type=Path, default=Path("run/roles"), help="finished surveys")
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args()
    if given.data is None:
        parser.error("say where the corpora are: --data DIR, or set HEADCOUNT_DATA")
    plans = tomllib.loads((HERE / "config.toml").read_text(encoding="utf8"))
    given.parts.mkdir(parents=True, exist_ok=True)
    for name in given.only or plans:
        path = given.parts / f"{name}.json"
        if not path.exists():
            print(f"{name} ...", flush=True)
            found = measured(plans[name], Path(given.data), given.translators)
            write_bytes(path, json.dumps(found, ensure_ascii=False).encode())
    done = {name: given.parts / f"{name}.json" for name in plans}
    joined = {name: json.loads(path.read_text()) for name, path in done.items() if path.exists()}
    write_bytes(given.out / "roles.json", json.dumps(joined, ensure_ascii=False).encode() + b"\n")


if __name__ == "__main__":
    main()
