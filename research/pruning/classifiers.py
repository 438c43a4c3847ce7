"""Accuracy against heads left: gradient, ablation, random and learned orders, bare and healed."""

from __future__ import annotations

import copy
import time
from typing import Any

import numpy as np
from torch import Tensor
from torch.nn.functional import kl_div, log_softmax, softmax

import headcount as hc
from headcount.importance.ablation import ablation
from headcount.importance.gradient import gradient
from headcount.tasks import Outcome
from headcount.tasks.task import ACCURACY
from research.glue.config import Train
from research.glue.encoded import Encoded
from research.glue.finetune import predict
from research.glue.model import logits_of
from research.glue.step import loss_of

from .classifier import Case
from .config import Config, Healing
from .gate_sets import learn_gates
from .half import half
from .healer import Healer, healing
from .judge import WIDTHS, judged
from .points import Point, along, by_score, shuffled
from .rows import curve_rows, free, within

__all__ = ["run_case"]


def run_case(case: Case, config: Config, record: bool, until: float | None) -> dict[str, Any]:
    """Everything about one classifier; no healing is begun after `until` on the clock."""
    began = time.monotonic()
    orders = _orders(case, config)
    left = range(0, len(case.subject.heads), config.classifiers.step)[1:]
    points = {name: along(name, order, list(left)) for name, order in orders.items()}
    ranked = time.monotonic()
    points["gates"], gates = learn_gates(
        case.subject, case.rows, case.width, config.gates, config.seed
    )
    learned = time.monotonic()
    rows, whole = _bare(case, points, config)
    judged = time.monotonic()
    healed, note = _healed(case, points, whole, config, record, until)
    print(case.name, f"{time.monotonic() - began:.1f} s, healing {note}", flush=True)
    return {
        "model": case.name,
        "heads": len(case.subject.heads),
        "held": {"name": case.held.name, "examples": len(case.held), "hash": case.held.hash},
        "train": {"name": case.train.name, "examples": len(case.train)},
        "whole": float(whole.value),
        "gates": gates,
        "curve": rows + healed,
        "free": _free(rows + healed, config.classifiers.margin),
        "healing": note,
        "seconds": {
            "rank": round(ranked - began, 1),
            "gates": round(learned - ranked, 1),
            "judge": round(judged - learned, 1),
            "heal": round(time.monotonic() - judged, 1),
        },
    }


Orders = dict[str, list[tuple[hc.Head, ...]]]


def _orders(case: Case, config: Config) -> Orders:
    """Heads from the least important on, by scores on training examples."""
    settings, seed = config.classifiers, config.seed
    ranking = case.train.limit(min(settings.rank, len(case.train)), seed)
    few = ranking.limit(min(settings.ablate, len(ranking)), seed)
    singles = [(head,) for head in case.subject.heads]
    scores = {
        "gradient": _scores(gradient(case.subject, ranking, batch_size=64)),
        "gradient by layer": _scores(
            gradient(case.subject, ranking, normalize="layer", batch_size=64)
        ),
        "ablation": _scores(ablation(case.subject, few, batch_size=settings.batch), "ablation"),
    }
    ranked = {name: by_score(singles, values) for name, values in scores.items()}
    drawn = {f"random {n}": shuffled(singles, seed + n) for n in range(settings.randoms)}
    return ranked | drawn


def _scores(table: hc.HeadTable, name: str = "gradient") -> list[float]:
    return [float(value) for value in table.numbers(name)]


def _bare(
    case: Case, points: dict[str, list[Point]], config: Config
) -> tuple[list[dict[str, Any]], Outcome]:
    """Every set of heads shut, nothing trained."""
    every = [point for order in points.values() for point in order]
    sets = [(), *[point.gone for point in every]]
    whole, *found = judged(case.subject, case.judging, sets, 16 * config.classifiers.batch)
    return curve_rows(every, found, whole, case.subject.heads), whole


def _healed(
    case: Case,
    points: dict[str, list[Point]],
    whole: Outcome,
    config: Config,
    record: bool,
    until: float | None,
) -> tuple[list[dict[str, Any]], str]:
    """The same sets at a few points, trained on; the whole model trained on as long beside them."""
    settings, learner = config.heal, copy.deepcopy(case.subject)
    wanted = [Point("whole", 0, len(learner.heads), (), ())]
    for left in settings.left:
        wanted += [p for name in settings.orders for p in points[name] if p.left == left]
    done, outcomes = [], []
    loss = _loss(case, learner.model, settings)
    with healing(learner, loss, settings, len(case.rows), record) as healer:
        for point in wanted:
            if until is not None and time.monotonic() > until and done:
                break
            healer.heal(point.gone, config.seed)
            outcomes.append(_judged(learner, case.judging, healer))
            done.append(point)
        note = healer.note
    trained = outcomes[0]
    rows = curve_rows(done, outcomes, whole, learner.heads, healed=True, trained=trained)
    return rows, f"{note}, {len(done)} of {len(wanted)} points"


def _judged(learner: hc.Subject, rows: Encoded, healer: Healer) -> Outcome:
    """The healed model on the held-out examples, its heads shut by the valve that healed it."""
    healer.opened.scales = healer.scales
    said = predict(learner.model, rows, Train(widths=WIDTHS)).argmax(dim=1)
    right = (said == rows.gold.cpu()).double().numpy()
    return Outcome(ACCURACY, np.stack([right, np.ones_like(right)], axis=1))


def _loss(case: Case, model: Any, settings: Healing) -> Any:
    """Cross-entropy and the distance from what the unpruned model says of the same row."""
    said = predict(case.subject.model, case.rows, Train(widths=(case.width,)))
    target = softmax(said.to(case.rows.ids.device), dim=1)

    def loss(rows: Tensor) -> Tensor:
        batch = case.rows.batch(case.width, rows)
        with half(rows.device):
            logits = logits_of(model, batch)
        away = kl_div(log_softmax(logits.float(), dim=1), target[rows], reduction="batchmean")
        return (1 - settings.teacher) * loss_of(logits.float(), batch) + settings.teacher * away

    return loss


def _free(rows: list[dict[str, Any]], margin: float) -> dict[str, Any]:
    """For every order how many heads are left where the loss becomes significant, and within."""
    found = {}
    for name in dict.fromkeys(row["order"] for row in rows):
        own = [row for row in rows if row["order"] == name and not row["healed"]]
        healed = [row for row in rows if row["order"] == name and row["healed"]]
        if own:
            found[name] = {"free": free(own), "within": within(own, margin)}
        if healed and name != "whole":
            fair = {"free": free(healed, "fair", "fair_p"), "within": within(healed, margin)}
            found[f"{name}, healed"] = fair
    return found
