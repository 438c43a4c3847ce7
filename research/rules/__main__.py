"""`python -m research.rules --data DIR`: relevance of heads under every rule, on two models.

The translator on Tatoeba, and MiniLM on STS-B (the cosine of two texts). Spearman's correlation
with confidence and with ablation, by stack; whether our rule's differs from each other rule's
(`paired.py`); how much relevance each rule loses on the way; and how far scores change with the
batch size and the precision. Rules and models that are not asked for stay in the JSON. Which rule
is the default, and why: decision 0005.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import headcount as hc
from headcount import tasks
from headcount.rooms.agreement.ranks import rank_agreement
from research import RESULTS
from research.translator.pairs import read_pairs

from .paired import STACKS, Scores, differences

RULES = ("default", "ding", "z+", "alpha-beta")
#: Ablation and confidence of MiniLM are measured on so many times the examples of relevance.
MORE = 4
#: Contribution, under the name of the rule of relevance that it was; then the rules.
ROWS = ("default", *RULES)


@dataclass(frozen=True)
class Case:
    """A model, the examples that are explained, and the scores of its heads beside relevance."""

    model: str
    task: tasks.Task
    others: Mapping[str, Scores]


def main() -> None:
    parser = argparse.ArgumentParser(prog="research.rules", description=__doc__)
    parser.add_argument("--data", type=Path, default=os.environ.get("HEADCOUNT_DATA"))
    parser.add_argument("--examples", type=int, default=24)
    parser.add_argument("--models", nargs="+", default=list(CASES), choices=list(CASES))
    parser.add_argument("--rules", nargs="+", default=list(ROWS), choices=ROWS)
    parser.add_argument("--out", type=Path, default=RESULTS / "relevance-rules.json")
    given = parser.parse_args()
    told = json.loads(given.out.read_text()) if given.out.exists() else {}
    told["command"] = "python -m research.rules"
    cases = [CASES[model](Path(given.data), given.examples) for model in given.models]
    for rule in given.rules:  # the slow one last
        for case in cases:
            part = told if case.model == "translator" else told.setdefault(case.model, {})
            measured(case, rule, part)
            given.out.write_text(json.dumps(told, indent=1) + "\n")
            print(case.model, rule, part["rules"][rule], part["differences"], flush=True)


def translator(data: Path, examples: int) -> Case:
    """Pairs of Tatoeba; confidence and ablation are those of `importance.json`."""
    inner = data / "parallel"
    pairs = read_pairs((inner if inner.is_dir() else data) / "tatoeba.en-de.dev.tsv")
    rows = np.random.default_rng(0).permutation(len(pairs))[:examples]
    task = tasks.translation([(pairs[i].source, pairs[i].target) for i in rows], metric="loss")
    known = json.loads((RESULTS / "importance.json").read_text())["cases"]["tatoeba"]["scores"]
    return Case("translator", task, {other: known[other] for other in ("confidence", "ablation")})


def minilm(data: Path, examples: int) -> Case:
    """Pairs of STS-B; ablation is of the squared error, on more of them."""
    whole = tasks.glue("stsb", data / "glue", similarity=True)
    more, subject = whole.limit(MORE * examples, 0), hc.load("minilm", device="cpu")
    sure = hc.survey(
        subject,
        more.texts(),
        columns=["confidence"],
        reading=hc.ReadingOptions(confidence_without="separator"),
    )
    costs = hc.score(subject, more, by="ablation", batch_size=32)
    others = {"confidence": _scores(sure, "confidence"), "ablation": _scores(costs, "ablation")}
    return Case("minilm", whole.limit(examples, 0), others)


CASES = {"translator": translator, "minilm": minilm}


def measured(case: Case, rule: str, told: dict[str, Any]) -> None:
    """One rule on a case; what is told of others stays, if it is of the same heads and scores."""
    table = _scored(case.model, case.task, rule)
    scores = _scores(table, table.names[0])
    if told.get("examples") != len(case.task):
        told.clear()  # of other examples
    told |= {"model": case.model, "examples": len(case.task)}
    told.setdefault("rules", {})[rule] = {
        **_kept(table),
        "stability": stability(case, rule),
        "agreement": _agreements(scores, case.others),
    }
    known = told.get("heads", {}).get("relevance", {}) | {rule: scores}
    known = {one: known[one] for one in ROWS if one in known}
    told["heads"] = {"relevance": known, **case.others}
    told["differences"] = differences(known, case.others)


def _kept(table: hc.HeadTable) -> dict[str, Any]:
    """What of the relevance sent reaches the lowest layer, and the most that is lost."""
    flow = table.details.get("relevance_flow")
    if flow is None:
        return {}
    lowest = {"through": round(float(flow["through"].iloc[0]), 4)}
    return {"worst loss": float(flow["worst_loss"].max()), "lowest cut": lowest}


def stability(case: Case, rule: str) -> dict[str, float]:
    """The largest change of a head's share, on the two shortest examples.

    By the batch size, and by the precision that the model is loaded in.
    """
    shortest = sorted(case.task.examples, key=lambda example: len(str(example)))
    few = replace(case.task, examples=tuple(shortest[:2]))
    first = _scored(case.model, few, rule)
    plain = first.numbers(first.names[0])
    others = {
        "batches of one": _scored(case.model, few, rule, batch_size=1),
        "float64": _scored(case.model, few, rule, dtype="float64"),
        "bfloat16": _scored(case.model, few, rule, dtype="bfloat16"),
    }
    return {
        name: float(f"{np.abs(table.numbers(table.names[0]) - plain).max():.2g}")
        for name, table in others.items()
    }


def _scored(
    model: str, task: tasks.Task, rule: str, *, batch_size: int = 8, dtype: str = "float32"
) -> hc.HeadTable:
    subject = hc.load(model, device="cpu", dtype=dtype)
    how = {"by": "contribution"} if rule == ROWS[0] else {"by": "relevance", "rule": rule}
    return hc.score(subject, task, **how, predictions="all", batch_size=batch_size)


def _scores(table: hc.HeadTable, column: str) -> Scores:
    values = (round(float(value), 6) for value in table.numbers(column))
    return dict(zip(map(str, table.heads), values, strict=True))


def _agreements(found: Scores, others: Mapping[str, Scores]) -> dict[str, Any]:
    told: dict[str, Any] = {}
    for stack in STACKS:
        heads = [head for head in found if head.startswith(f"{stack}.")]
        for name, other in others.items() if heads else ():
            one = rank_agreement([found[head] for head in heads], [other[head] for head in heads])
            told.setdefault(stack, {})[name] = [round(float(x), 3) for x in one[:3]]
    return told


if __name__ == "__main__":
    main()
