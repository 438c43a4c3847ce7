"""`python -m research.rules.rare --data DIR`: is the head nearest to a rare-word head relevant?

Voita et al. 2019 (figure 1): the head of the first layer that points to rare words is the most
relevant one of its layer, and unsure. Here the head of the Russian translator's first layer that
points most to the two rarest tokens (`roles/ru-tatoeba.json`): its confidence, and its relevance
under every rule over that of the most relevant other head of the layer.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any

import numpy as np

import headcount as hc
from headcount import tasks
from research.translator.pairs import read_pairs

from .__main__ import RESULTS, RULES

COMMAND = "python -m research.rules.rare"


def main() -> None:
    parser = argparse.ArgumentParser(prog="research.rules.rare", description=__doc__)
    parser.add_argument("--data", type=Path, default=os.environ.get("HEADCOUNT_DATA"))
    parser.add_argument("--model", default="translator-ru", help="what hc.load takes")
    parser.add_argument("--survey", type=Path, default=RESULTS / "roles" / "ru-tatoeba.json")
    parser.add_argument("--pairs", default="tatoeba.en-ru.dev.tsv")
    parser.add_argument("--examples", type=int, default=16)
    parser.add_argument("--out", type=Path, default=RESULTS / "rare-head.json")
    given = parser.parse_args()
    inner = Path(given.data) / "parallel"
    pairs = read_pairs((inner if inner.is_dir() else given.data) / given.pairs)
    rows = np.random.default_rng(0).permutation(len(pairs))[: given.examples]
    task = tasks.translation([(pairs[i].source, pairs[i].target) for i in rows], metric="loss")
    told = nearest(json.loads(given.survey.read_text(encoding="utf8")))
    told |= {"command": COMMAND, "model": given.model, "examples": len(task), "relevance": {}}
    subject = hc.load(given.model, device="cpu")
    for rule in ("default", *RULES):  # contribution, by the name that it had
        own = {"by": "contribution"} if rule == "default" else {"by": "relevance", "rule": rule}
        table = hc.score(subject, task, predictions="all", batch_size=8, **own)
        heads = (str(head) for head in table.heads)
        found = dict(zip(heads, table.numbers(table.names[0]).tolist(), strict=True))
        told["relevance"][rule] = standing(found, told["head"])
        given.out.write_text(json.dumps(told, indent=1) + "\n")
        print(rule, told["relevance"][rule], flush=True)


def nearest(survey: dict[str, Any]) -> dict[str, Any]:
    """The first layer's head that points most to the two rarest tokens, and how sure it is."""
    rows = [row for row in survey["rarity"] if row["head"].startswith("enc.0.")]
    best = max(rows, key=lambda row: row["share"])
    sure = dict(zip(survey["index"], survey["columns"]["confidence"], strict=True))
    there = {head: value for head, value in sure.items() if head.startswith("enc.")}
    figures = {name: best[name] for name in ("head", "share", "low", "high")}
    return figures | {"confidence": standing(there, best["head"])}


def standing(values: dict[str, float], head: str) -> dict[str, float]:
    """A head's value, its place from above in its layer and stack, and it over the next best.

    >>> standing({"enc.0.0": 2.0, "enc.0.1": 3.0, "enc.1.0": 4.0}, "enc.0.1")
    {'value': 3.0, 'over the next': 1.5, 'place in layer': 1, 'place in stack': 2}
    """
    stack, layer, _ = head.split(".")
    beside = [v for h, v in values.items() if h.startswith(f"{stack}.{layer}.") and h != head]
    others = [v for h, v in values.items() if h.startswith(f"{stack}.") and h != head]
    mine = values[head]
    return {
        "value": round(mine, 5),
        "over the next": round(mine / max(beside), 3),
        "place in layer": 1 + sum(value > mine for value in beside),
        "place in stack": 1 + sum(value > mine for value in others),
    }


if __name__ == "__main__":
    main()
