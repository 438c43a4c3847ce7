"""`python -m experiments.rules --data DIR`: relevance of the translator's heads under every rule.

Spearman's correlation with confidence and with ablation (`importance.json`, Tatoeba), by stack, and
how much relevance each rule loses on the way. Which rule is the default, and why: decision 0005.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any

import numpy as np

import headcount as hc
from experiments.translator.pairs import read_pairs
from headcount import tasks
from headcount.stats import rank_agreement

RESULTS = Path(__file__).parent.parent.parent / "docs" / "results"
RULES = ("default", "ding", "z+", "alpha-beta")


def main() -> None:
    parser = argparse.ArgumentParser(prog="experiments.rules", description=__doc__)
    parser.add_argument("--data", type=Path, default=os.environ.get("HEADCOUNT_DATA"))
    parser.add_argument("--examples", type=int, default=24)
    parser.add_argument("--out", type=Path, default=RESULTS / "relevance-rules.json")
    given = parser.parse_args()
    inner = Path(given.data) / "parallel"
    pairs = read_pairs((inner if inner.is_dir() else given.data) / "tatoeba.en-de.dev.tsv")
    rows = np.random.default_rng(0).permutation(len(pairs))[: given.examples]
    task = tasks.translation([(pairs[i].source, pairs[i].target) for i in rows], metric="loss")
    subject = hc.load("translator", device="cpu")
    scores = json.loads((RESULTS / "importance.json").read_text())["cases"]["tatoeba"]["scores"]
    told: dict[str, Any] = {
        "command": "python -m experiments.rules", "examples": len(task), "rules": {},
    }  # fmt: skip
    for rule in RULES:
        table = hc.score(subject, task, by="relevance", rule=rule, batch_size=8)
        found = {
            str(head): value
            for head, value in zip(table.heads, table.numbers("relevance"), strict=True)
        }
        lost = float(table.details["relevance_flow"]["worst_loss"].max())
        told["rules"][rule] = {"worst loss": lost, "agreement": _agreements(found, scores)}
        given.out.write_text(json.dumps(told, indent=1) + "\n")
        print(rule, told["rules"][rule]["agreement"]["enc"], flush=True)


def _agreements(found: dict[str, float], scores: dict[str, Any]) -> dict[str, Any]:
    told: dict[str, Any] = {}
    for stack in ("enc", "dec", "cross"):
        heads = [head for head in found if head.startswith(f"{stack}.")]
        for other in ("confidence", "ablation"):
            theirs = [_value(scores[other][head]) for head in heads]
            one = rank_agreement([found[head] for head in heads], theirs)
            told.setdefault(stack, {})[other] = [round(float(x), 3) for x in one[:3]]
    return told


def _value(figure: Any) -> float:
    return float(figure[0] if isinstance(figure, list) else figure)


if __name__ == "__main__":
    main()
