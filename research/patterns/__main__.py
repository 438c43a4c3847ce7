"""`python -m research.patterns [--data DIR --classifiers DIR]`: how well patterns are told.

The looked-at maps need nothing else; shares by task need corpora and classifiers, and without
them those that research/results/together-patterns.json has are kept.
"""

from __future__ import annotations

import argparse
import json
import os
import tomllib
from pathlib import Path
from typing import Any

import pandas as pd

from headcount.records.files import to_strict
from headcount.rooms.patterns.tally import Judge
from research import RESULTS, pages_of

from .cut import cut_agreement
from .draw import draw
from .heads import FAMILY
from .judged import doubled, passes, readers, score, told
from .looked_at import looked_at
from .shares import same_vertical, task_shares

HERE = Path(__file__).parent
NAME = "together-patterns"
JUDGES: tuple[Judge, ...] = ("network", "rule")


def main() -> None:
    parser = argparse.ArgumentParser(prog="research.patterns", description=__doc__)
    parser.add_argument("--data", type=Path, default=os.environ.get("HEADCOUNT_DATA"))
    parser.add_argument("--classifiers", type=Path, help="what research.glue --save wrote")
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args()
    config = tomllib.loads((HERE / "config.toml").read_text())
    found: dict[str, Any] = {"command": "python -m research.patterns", "config": config}
    found |= looked()
    if given.data is not None and given.classifiers is not None:
        found["shares"] = task_shares(config["shares"], Path(given.data), given.classifiers)
        found["same vertical heads"] = same_vertical(found["shares"])
    else:
        known = ("shares", "same vertical heads")
        found |= {name: one for name, one in _before(given.out).items() if name in known}
    given.out.mkdir(parents=True, exist_ok=True)
    text = json.dumps(to_strict(found), indent=1) + "\n"
    (given.out / f"{NAME}.json").write_text(text)
    draw(given.out, pages_of(given.out))


def looked() -> dict[str, Any]:
    """What the looked-at maps say of both judges."""
    maps, about = looked_at()
    about["family"] = [FAMILY[name] for name in about["model"]]
    parts = _parts(about)
    result: dict[str, Any] = {
        "the reader, twice": {f"draw {n}": passes(about[about["draw"] == n]) for n in (1, 2)},
        "labels": {name: about[rows]["label"].value_counts().to_dict() for name, rows in parts},
    }
    for by in JUDGES:
        about[by] = told(maps, by)
        twice = told([doubled(one) for one in maps], by)
        result[by] = {name: score(about[rows], by) for name, rows in parts}
        result[by]["same when every token is doubled"] = _same(about[by], twice)
        hidden = told([one._replace(segment=None) for one in maps], by)
        result[by]["test, texts not told"] = _hidden(about, by, hidden)
        result[by]["same on the first half of the text"] = cut_agreement("minilm", by)
        for name, _ in parts:
            _tell(f"{by}, {name}", result[by][name])
    result["two readers"] = {
        name: readers(about[rows], JUDGES) for name, rows in parts if name.startswith("test")
    }
    return result


def _parts(about: pd.DataFrame) -> list[tuple[str, pd.Series]]:
    """The first draw of maps at random, the second where blocks are likely, both; and tuning."""
    test, first = about["part"] == "test", about["draw"] == 1
    both = {"test": test & first, "test, second draw": test & ~first, "test, both draws": test}
    return [*both.items(), ("dev", ~test)]


def _hidden(about: pd.DataFrame, by: Judge, answers: list[str]) -> dict[str, Any]:
    """The same test when a judge must see by itself where texts meet; single texts as before."""
    pairs = about["kind"].str.endswith("pair").to_numpy() & (about["part"] == "test").to_numpy()
    return score(about.assign(**{by: answers})[pairs], by)


def _same(first: Any, second: list[str]) -> float:
    return round(sum(a == b for a, b in zip(first, second, strict=True)) / len(second), 4)


def _before(folder: Path) -> dict[str, Any]:
    path = folder / f"{NAME}.json"
    return json.loads(path.read_text()) if path.exists() else {}


def _tell(by: str, found: dict[str, Any]) -> None:
    each = ", ".join(f"{name} {f1['value']}" for name, f1 in found["f1"].items())
    right, macro = found["accuracy"], found["macro f1"]
    print(f"{by}: accuracy {right['value']}, macro F1 {macro['value']} ({each})", flush=True)


if __name__ == "__main__":
    main()
