"""`python -m research.features --data DIR --classifiers DIR`: what heads look at, by task.

Kovaleva et al. 2019, section 4.4, figures 6 and 7: attention to nouns, verbs, pronouns, subjects,
objects, negation, [CLS] and [SEP], of MiniLM as it is and fine-tuned, on the same dev texts of each
task, parsed. Of all tokens, and of the row of [CLS] in the last layer.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any

import pandas as pd

import headcount as hc
from headcount.records.files import to_strict
from headcount.rooms.features.feature import Features
from research import RESULTS

COMMAND = "python -m research.features"
TASKS = ("sst2", "mrpc", "rte", "cola")
#: Neither is a kind of word; there is no other word of such a place to compare with.
SPECIAL = ("first", "separator")


def main() -> None:
    parser = argparse.ArgumentParser(prog="research.features", description=__doc__)
    add = parser.add_argument
    add("--data", type=Path, default=os.environ.get("HEADCOUNT_DATA"))
    add("--classifiers", type=Path, required=True, help="what `make models TRAIN=all` leaves")
    add("--examples", type=int, default=200, help="of each dev set, drawn at random")
    add("--out", type=Path, default=RESULTS / "together-features.json")
    given = parser.parse_args()
    if given.data is None:
        parser.error("say where the corpora are: --data DIR, or set HEADCOUNT_DATA")
    told: dict[str, Any] = {"command": COMMAND, "examples": given.examples, "tasks": {}}
    base = hc.load("minilm", device="cpu")
    for task in TASKS:
        tuned = hc.load(str(given.classifiers / f"minilm-{task}-0"), device="cpu")
        texts = hc.tasks.glue(task, given.data / "glue").limit(given.examples, 0).texts()
        parser_ = str(given.data / "models" / "en_ewt.udpipe")
        told["tasks"][task] = {
            name: measured(subject, texts, parser_)
            for name, subject in (("base", base), ("tuned", tuned))
        }
        print(f"{task} done", flush=True)
    given.out.write_text(json.dumps(to_strict(told), indent=1) + "\n", encoding="utf8")


def measured(subject: hc.Subject, texts: Any, parser: str) -> dict[str, Any]:
    """By feature: mean attention of all heads, by layer, and of the last layer's [CLS] row."""
    table = hc.survey(
        subject,
        texts,
        columns=["separator"],
        roles=hc.RoleOptions(roles=[Features()], parser=parser),
    )
    rows = table.details["features"]
    rows = rows[(rows["split"] == "all") & (rows["stack"] == "enc")]
    last = rows["layer"].max()
    found: dict[str, Any] = {}
    for feature, own in rows.groupby("feature"):
        every, first = (own[own["origin"] == origin] for origin in ("all", "first"))
        found[str(feature)] = {
            "texts": int(own["n"].max()),
            "all tokens": _mean(every, "value"),
            "by layer": every.groupby("layer")["value"].mean().round(4).tolist(),
            "[CLS] in the last layer": _mean(first[first["layer"] == last], "value"),
            **({} if feature in SPECIAL else {"beyond other words": _mean(every, "difference")}),
        }
    return found


def _mean(rows: pd.DataFrame, name: str) -> dict[str, float]:
    """The mean over heads; its interval is at most as wide as the heads' own on average."""
    told = rows[
        [name, f"{name}_low", f"{name}_high"] if name != "value" else ["value", "low", "high"]
    ]
    value, low, high = told.mean()
    return {"value": round(value, 4), "low": round(low, 4), "high": round(high, 4)}


if __name__ == "__main__":
    main()
