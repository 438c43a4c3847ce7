"""Relevance beside falls: agreement within each layer, and how much relevance was kept."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from scipy.stats import spearmanr
from torch import Tensor

import headcount as hc
from headcount.rooms.relevance.propagate import traced
from headcount.rooms.relevance.rule import Rule
from headcount.rooms.relevance.score import FlowSums, explaining, flow_arrays, shares_of_layers
from headcount.tasks.task import Task
from headcount.text.batch import Batch
from research.relevance.shut import falls


def compared(subject: hc.Subject, task: Task, rules: Iterable[Rule]) -> dict[str, Any]:
    """Agreement and flow of each rule."""
    batches = list(task.batches(subject, 8))
    fell = torch.cat([falls(subject, task, batch) for batch in batches])
    shut, _ = shares_of_layers(fell.double(), subject.anatomy)
    told = {}
    for rule in rules:
        shares, flow = relevant(subject, task, batches, rule)
        told[rule.name] = {"agreement": agreement(subject, shares, shut), "flow": kept(flow)}
    return {"predictions": len(shut), "rules": told}


def relevant(
    subject: hc.Subject, task: Task, batches: Iterable[Batch], rule: Rule
) -> tuple[Tensor, FlowSums]:
    """Shares of every prediction, ``[prediction, head]``, and what was kept."""
    found, flow = [], FlowSums()
    with traced(subject, rule) as tracing, explaining(subject, task) as explain:
        for batch in batches:
            start = explain(tracing, batch)
            back = tracing.back(start.output, start.starts, start.ledger)
            heads = back.heads.double().unflatten(1, (-1, start.rows)).sum(dim=2)
            shares, _ = shares_of_layers(heads, subject.anatomy)
            there = start.counted.unflatten(1, (-1, start.rows))[:, :, 0]
            found.append(shares.transpose(0, 1)[there.T])
            flow.add(flow_arrays(back.flow, start))
    return torch.cat(found), flow


def agreement(subject: hc.Subject, ours: Tensor, shut: Tensor) -> dict[str, dict[str, float]]:
    """By stack, means over layers: correlation within single predictions, and ranks of means."""
    by_stack: dict[str, list[tuple[float, float]]] = {}
    for site, span in subject.anatomy.spans.items():
        pair = ours[:, span].numpy(), shut[:, span].numpy()
        by_stack.setdefault(site.stack, []).append((within(*pair), ranks(*pair)))
    return {
        stack: dict(zip(("within", "ranks"), np.round(np.mean(rows, 0), 3).tolist(), strict=True))
        for stack, rows in by_stack.items()
    }


def within(ours: np.ndarray, shut: np.ndarray) -> float:
    """The mean over predictions of the correlation over a layer's heads."""
    centred = [part - part.mean(axis=1, keepdims=True) for part in (ours, shut)]
    sizes = [np.sqrt((part**2).sum(axis=1)) for part in centred]
    return float(((centred[0] * centred[1]).sum(axis=1) / (sizes[0] * sizes[1])).mean())


def ranks(ours: np.ndarray, shut: np.ndarray) -> float:
    """The rank correlation of mean shares over a layer's heads."""
    return float(spearmanr(ours.mean(axis=0), shut.mean(axis=0)).statistic)


def kept(flow: FlowSums) -> dict[str, Any]:
    """What reaches the first layer, what stays in biases, and the worst loss."""
    frame = flow.frame()
    return {
        "through": round(float(frame["through"].iloc[0]), 4),
        "biases": round(float(frame["biases"].iloc[0]), 4),
        "worst_loss": float(f"{frame['worst_loss'].max():.1e}"),
    }
