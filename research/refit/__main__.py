"""`python -m research.refit --data DIR`: how many heads can go once what is left makes up for them.

Three ways on the same examples: cut in the order of gradient importance (Michel et al. 2019), the
same order refitted, and the order of cost after the refit, refitted. Moments and orders come from
one part of the examples, the curve from another. The translator is judged by loss and BLEU on
Tatoeba, MiniLM by the loss of STS-B's similarity, SmolLM2 by loss on WikiText-2.
"""

from __future__ import annotations

import argparse
import json
import lzma
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import headcount as hc
from headcount.importance import Sweep, sets, sweep
from headcount.pruning import removable_units
from headcount.pruning.curve import loss_bounds
from headcount.records import Head, provenance
from headcount.rooms.refit import Refit
from headcount.tasks import Task
from research import RESULTS

COMMAND = "python -m research.refit --data DIR"
SHARES = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6)


def _lines(data: Path, name: str) -> list[str]:
    path = data / name
    open_text = lzma.open if path.suffix == ".xz" else open
    with open_text(path, "rt", encoding="utf8") as file:
        return file.read().splitlines()


def _pairs(data: Path, part: str, count: int) -> list[tuple[str, str]]:
    rows = (line.split("\t") for line in _lines(data, f"parallel/tatoeba.en-de.{part}.tsv"))
    return [(row[0], row[1]) for row in rows][:count]


def _similar(data: Path, part: str, count: int) -> list[tuple[str, str, float]]:
    rows = [line.split("\t") for line in _lines(data, f"glue/STS-B/{part}.tsv.xz")][1:]
    return [(row[7], row[8], float(row[9])) for row in rows if len(row) > 9][:count]


def _paragraphs(data: Path, first: int, count: int) -> list[str]:
    lines = _lines(data, "text/wikitext2-paragraphs.txt.xz")
    long = [line.split() for line in lines if len(line.split()) > 60]
    return [" ".join(words[:64]) for words in long[first : first + count]]


def _cases(data: Path, scale: float) -> dict[str, Callable[[], tuple[Task, list[Task]]]]:
    """Model: the examples to measure on, and the tasks that judge."""

    def many(count: int) -> int:
        return max(8, round(count * scale))

    def translator() -> tuple[Task, list[Task]]:
        choose = hc.tasks.translation(_pairs(data, "dev", many(500)), metric="loss")
        judge = _pairs(data, "test", many(500))
        bleu = hc.tasks.translation(judge[: many(150)], metric="bleu")
        return choose, [hc.tasks.translation(judge, metric="loss"), bleu]

    def minilm() -> tuple[Task, list[Task]]:
        choose = hc.tasks.similarity(_similar(data, "train", many(500)))
        return choose, [hc.tasks.similarity(_similar(data, "dev", many(1000)))]

    def smollm2() -> tuple[Task, list[Task]]:
        choose = hc.tasks.lm(_paragraphs(data, 0, many(24)))
        return choose, [hc.tasks.lm(_paragraphs(data, 200, many(32)))]

    return {"translator": translator, "minilm": minilm, "smollm2": smollm2}


def _rows(swept: Sweep, way: str, counts: Sequence[int]) -> list[dict[str, Any]]:
    """A row a point: what it costs, with its 95% interval and one-sided bound."""
    losses = swept.losses(correction="none")
    bounds = loss_bounds(swept)
    return [
        {
            "way": way,
            "metric": swept.baseline.name,
            "n": len(swept.baseline),
            "whole": swept.baseline.value,
            "gone": count,
            "value": swept.outcomes[place].value,
            "cost": float(losses.value[place]),
            "low": float(losses.low[place]),
            "high": float(losses.high[place]),
            "bound": float(bounds[place]),
        }
        for place, count in enumerate(counts)
    ]


def _flat(units: Sequence[Sequence[Head]]) -> list[Head]:
    return [head for unit in units for head in unit]


#: Examples at once: a batch of a language model's texts has a score for each of 49,152 words.
BATCHES = {"smollm2": 2}
#: Shares of the heads that go, where a forward takes long.
FEWER = {"smollm2": (0.1, 0.2, 0.3, 0.5)}


def measured(name: str, choose: Task, judges: Sequence[Task]) -> dict[str, Any]:
    """All three ways for one model."""
    subject, size = hc.load(name), {"batch_size": BATCHES.get(name, 16)}
    units = removable_units(subject.anatomy, subject.heads)
    scores = hc.score(subject, choose, by="gradient", compare=False, **size)
    worth = dict(zip(scores.heads, scores.numbers("gradient").tolist(), strict=True))
    by_gradient = sorted(units, key=lambda unit: sum(worth[head] for head in unit))
    refit = Refit(subject, choose, **size)
    by_cost = [unit for unit, _ in refit.order(units)]
    counts = sorted({max(1, round(share * len(units))) for share in FEWER.get(name, SHARES)})

    def points(order: Sequence[Sequence[Head]]) -> dict[str, list[Head]]:
        return {f"{count} units": _flat(order[:count]) for count in counts}

    rows: list[dict[str, Any]] = []
    for task in judges:
        gone = [len(heads) for heads in points(by_cost).values()]
        cut = sweep(subject, task, sets(points(by_gradient)), metric="task", **size)
        rows += _rows(cut, "gradient, cut", gone)
        for way, order in (("gradient, refitted", by_gradient), ("refit, refitted", by_cost)):
            rows += _rows(refit.sweep(task, points(order), **size), way, gone)
    return {"heads": len(subject.heads), "measured_on": len(choose), "rows": rows}


def main() -> None:
    parser = argparse.ArgumentParser(prog="research.refit", description=__doc__)
    parser.add_argument("--data", type=Path, default=os.environ.get("HEADCOUNT_DATA"))
    parser.add_argument("--models", nargs="+", default=["translator", "minilm", "smollm2"])
    parser.add_argument("--scale", type=float, default=1.0, help="a share of the examples")
    parser.add_argument("--out", type=Path, default=RESULTS / "refit.json")
    given = parser.parse_args()
    if given.data is None:
        parser.error("say where the corpora are: --data DIR, or HEADCOUNT_DATA")
    kept: dict[str, Any] = {"command": COMMAND, "models": {}}
    if given.out.exists():
        kept = json.loads(given.out.read_text(encoding="utf8"))
    for name in given.models:
        kept["models"][name] = measured(name, *_cases(Path(given.data), given.scale)[name]())
        kept["provenance"] = provenance.collect() | {"command": COMMAND}
        given.out.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf8")
        for row in kept["models"][name]["rows"]:
            print(name, json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
