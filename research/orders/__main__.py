"""`python -m research.orders`: orders of removal side by side, on the bundled translator.

By the teacher-forced loss of its sample: heads are ordered on one half of the pairs and judged on
the other, ten percent at a step. Writes research/results/pruning-orders.json; `--draw` draws the
figure again from it.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import headcount as hc
from headcount.bundle import sample
from headcount.importance.sweeps.sweeping import Sweep
from headcount.pruning.curve import Order, measure_curve, point_name
from headcount.pruning.goal import Goal, RankingOptions
from headcount.pruning.plan import Orders
from headcount.records import provenance
from headcount.stats import holm
from research import RESULTS, pages_of
from research.orders.draw import draw

COMMAND = "python -m research.orders"
PAPER = "Michel et al."

#: A name for each order, its score, and how that is estimated.
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    PAPER: ("gradient", {"convention": "paper"}),
    "gradient": ("gradient", {}),
    "gradient, again before each step": ("gradient", {"exact": True}),
    "ablation": ("ablation", {}),
    "ablation, again before each step": ("ablation", {"exact": True}),
}


#: What the JSON has of each point of a curve.
PLACE = ["order", "scope", "step", "heads_left", "metric"]
KEPT = [*PLACE, "value", "low", "high", "delta", "delta_low", "delta_high", "p"]


def order_of(name: str, subject: hc.Subject, choose: Any, steps: int) -> Order:
    """One order, on the heads that all of them may take."""
    score, how = CASES[name]
    made = Orders(subject, choose, RankingOptions(**how)).of([score], Goal())[0]
    return replace(made, name=name, steps=made.steps[:steps])


def against_paper(found: Sweep, orders: list[Order]) -> list[dict[str, Any]]:
    """The loss of every order less the paper's, at each step, on the same pairs."""
    paper = next(order for order in orders if order.name == PAPER)
    rows = []
    for order in orders:
        for step in range(1, len(order) + 1) if order is not paper else ():
            theirs = found.outcome(point_name(paper, step))
            less = found.outcome(point_name(order, step)).against(theirs)
            ends = {"value": less.value, "low": less.low, "high": less.high, "p": less.p}
            told = {key: round(float(value), 5) for key, value in ends.items()}
            rows.append({"order": order.name, "removed": len(order.gone(step)), **told})
    for row, p in zip(rows, holm([row["p"] for row in rows]), strict=True):
        row["p_adjusted"] = round(float(p), 5)
    return rows


def measured(names: list[str], limit: int | None, seed: int) -> dict[str, Any]:
    """Every order, and three at random, on one split of the sample."""
    subject = hc.load("translator", device="cpu", dtype="float32")
    task: Any = hc.tasks.translation(sample.pairs(), metric="loss")
    task = task if limit is None else task.limit(limit, seed)
    choose, held_out = task.split(0.5, seed)
    chance = Orders(subject, choose, RankingOptions(seed=seed)).of(["random"], Goal())
    orders = [order_of(name, subject, choose, len(chance[0])) for name in names] + chance
    found, frame, _ = measure_curve(subject, held_out, orders, part="held-out", seed=seed)
    shown = frame[KEPT].round(5).astype(object)
    rows = shown.where(shown.notna(), None).to_dict("records")
    about = {"pairs": {"choose": len(choose), "held-out": len(held_out)}, "seed": seed}
    return {**about, "curve": rows, "against": against_paper(found, orders)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--cases", nargs="*", default=list(CASES), help="some of the orders")
    parser.add_argument("--limit", type=int, help="use fewer pairs")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--draw", action="store_true", help="measure nothing, draw what was")
    given = parser.parse_args()
    if not given.draw:
        told = measured(given.cases, given.limit, given.seed)
        about = provenance.collect() | {"command": COMMAND}
        result = json.dumps({"command": COMMAND, **told, "provenance": about}, indent=1)
        (given.out / "pruning-orders.json").write_text(result + "\n")
    draw(given.out, pages_of(given.out))


if __name__ == "__main__":
    main()
