"""Perplexity of a language model against groups of heads left, bare and healed.

Heads that share keys and values go together: a group is what surgery can cut alone.
"""

from __future__ import annotations

import copy
import math
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, kl_div, log_softmax

import headcount as hc
from headcount.models.guards import frozen
from headcount.records.heads import Head
from headcount.tasks import Outcome
from headcount.wiring.valves import valve

from .config import Config, Healing
from .half import half
from .healer import healing
from .points import Point, along, by_score, shuffled
from .reading import losses, outcome, read, row_losses
from .rows import curve_rows, free
from .text_rows import Rows, read_rows, toy_llama

__all__ = ["groups_of", "load_model", "run_groups"]

Group = tuple[Head, ...]


def groups_of(subject: hc.Subject) -> list[Group]:
    """Heads that share keys and values, in the model's order."""
    found = []
    for site in subject.anatomy.sites:
        size = site.heads // site.kv_heads
        names = site.names
        found += [tuple(names[start : start + size]) for start in range(0, site.heads, size)]
    return found


def load_model(config: Config, name: str | None, device: str) -> hc.Subject:
    """The language model in float32."""
    chosen = name or config.groups.model
    if chosen == "toy":
        return toy_llama()
    subject = hc.load(chosen, device=device, dtype="float32")
    subject.name = subject.source = config.groups.model  # no path of a machine
    return subject


def run_groups(
    config: Config,
    name: str | None,
    data: Path | None,
    device: str,
    record: bool,
    until: float | None,
) -> dict[str, Any]:
    """Everything about the language model."""
    began = time.monotonic()
    torch.set_float32_matmul_precision("high")
    subject = load_model(config, name, device)
    text = read_rows(config, subject, data)
    text = Rows(text.train.to(device), text.held.to(device), text.paragraphs)
    loaded = time.monotonic()
    points = _points(subject, text, config)
    ranked = time.monotonic()
    rows, whole = _bare(subject, text, points, config)
    judged = time.monotonic()
    print(
        f"loaded {loaded - began:.1f}, ranked {ranked - loaded:.1f}, judged {judged - ranked:.1f}"
    )
    healed, note = _healed(subject, text, points, whole, config, record, until)
    curve = [row | _perplexity(row) for row in rows + healed]
    return {
        "model": subject.name,
        "groups": len(groups_of(subject)),
        "text": {
            "paragraphs": text.paragraphs,
            "train tokens": text.train.numel(),
            "held tokens": text.held.numel(),
        },
        "whole": {"loss": float(whole.value), "perplexity": math.exp(whole.value)},
        "orders": {
            name: ["+".join(map(str, point.removed)) for point in order]
            for name, order in points.items()
        },
        "curve": curve,
        "free": {
            order: free([r for r in curve if r["order"] == order and not r["healed"]])
            for order in points
        },
        "healing": note,
        "seconds": {
            "load": round(loaded - began, 1),
            "rank": round(ranked - loaded, 1),
            "judge": round(judged - ranked, 1),
            "heal": round(time.monotonic() - judged, 1),
        },
    }


def _points(subject: hc.Subject, text: Rows, config: Config) -> dict[str, list[Point]]:
    settings, groups = config.groups, groups_of(subject)
    few = text.train[: settings.rank]
    slopes = _slopes(subject, few, groups, settings.batch)
    alone = losses(subject, few, [(), *groups], settings.batch).sum(1)
    orders = {
        "gradient": by_score(groups, slopes),
        "ablation": by_score(groups, alone[1:] - alone[0]),
    }
    for number in range(settings.randoms):
        orders[f"random {number}"] = shuffled(groups, config.seed + number)
    return {name: along(name, order, settings.left) for name, order in orders.items()}


def _slopes(subject: hc.Subject, ids: Tensor, groups: list[Group], batch: int) -> np.ndarray:
    """The mean over rows of |dL/dxi| with one xi a group (Michel et al. 2019, eq. 2)."""
    found = []
    subject.model.eval()
    small = max(1, batch // 4)
    with frozen(subject.model), valve(subject, torch.ones(len(subject.heads))) as opened:
        for part in ids.split(small):
            scales = torch.ones(len(part), len(subject.heads), device=ids.device)
            opened.scales = scales.requires_grad_()
            (slope,) = torch.autograd.grad(row_losses(subject.model, part).sum(), scales)
            found.append(slope.view(len(part), len(groups), -1).sum(-1).abs().cpu())
    return torch.cat(found).mean(0).numpy()


def _bare(
    subject: hc.Subject, text: Rows, points: dict[str, list[Point]], config: Config
) -> tuple[list[dict[str, Any]], Outcome]:
    every = [point for order in points.values() for point in order]
    sets = [(), *[point.gone for point in every]]
    found = losses(subject, text.held, sets, config.groups.batch)
    made = [outcome(nats, config.groups.length) for nats in found]
    return curve_rows(every, made[1:], made[0], subject.heads), made[0]


def _healed(
    subject: hc.Subject,
    text: Rows,
    points: dict[str, list[Point]],
    whole: Outcome,
    config: Config,
    record: bool,
    until: float | None,
) -> tuple[list[dict[str, Any]], str]:
    """A few of the sets after distillation from the whole model, and the whole model after it."""
    settings, learner = config.groups.heal, copy.deepcopy(subject)
    total = len(groups_of(subject))
    wanted = [Point("whole", 0, total, (), ())]
    for left in settings.left:
        wanted += [p for name in settings.orders for p in points[name] if p.left == left]
    done, outcomes = [], []
    loss = _loss(subject, learner.model, text.train, settings)
    with healing(learner, loss, settings, len(text.train), record) as healer:
        for point in wanted:
            if until is not None and time.monotonic() > until and done:
                break
            healer.heal(point.gone, config.seed)
            with torch.no_grad():
                parts = text.held.split(config.groups.batch)
                nats = torch.cat([row_losses(learner.model, part) for part in parts])
            outcomes.append(outcome(nats.double().cpu().numpy(), config.groups.length))
            done.append(point)
            print(point.name, f"{outcomes[-1].value:.4f}", flush=True)
        note = healer.note
    rows = curve_rows(done, outcomes, whole, learner.heads, healed=True, trained=outcomes[0])
    return rows, f"{note}, {len(done)} of {len(wanted)} points"


def _loss(subject: hc.Subject, model: Any, text: Tensor, settings: Healing) -> Any:
    """How far the learner's next-token distribution is from the whole model's."""
    on_gpu = text.is_cuda
    teacher = copy.deepcopy(subject.model).to(torch.bfloat16) if on_gpu else subject.model
    teacher.requires_grad_(False).eval()

    def loss(rows: Tensor) -> Tensor:
        ids = text[rows]
        with torch.no_grad():
            target = log_softmax(read(teacher, ids).float(), dim=-1).flatten(0, 1)
        with half(rows.device):
            logits = read(model, ids)
        said = log_softmax(logits.float(), dim=-1)
        away = kl_div(said.flatten(0, 1), target, reduction="batchmean", log_target=True)
        if settings.teacher == 1.0:
            return away
        plain = cross_entropy(logits[:, :-1].float().flatten(0, 1), ids[:, 1:].flatten())
        return settings.teacher * away + (1 - settings.teacher) * plain

    return loss


def _perplexity(row: dict[str, Any]) -> dict[str, float]:
    return {
        f"perplexity{end}": math.exp(row[key])
        for key, end in (("value", ""), ("low", "_low"), ("high", "_high"))
    }
