"""Gates for several numbers of heads at once: every block of the batch runs through its own.

The weights stay as they are, so nothing passes from one set of gates to another: the same as
learning them one after the other, in one pass of a larger batch.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from headcount.models.guards import frozen
from headcount.models.subject import Subject
from headcount.rooms.gates.gates import Gates, Target
from headcount.wiring.valves import valve
from research.glue.encoded import Encoded
from research.glue.model import logits_of

from .config import Gating
from .half import half
from .points import Point

__all__ = ["learn_gates"]


def learn_gates(
    subject: Subject, rows: Encoded, width: int, settings: Gating, seed: int
) -> tuple[list[Point], list[dict[str, Any]]]:
    """The heads that gates leave, a point for every number asked for, and how they got there."""
    torch.manual_seed(seed)
    device, heads = rows.ids.device, subject.heads
    gates = [Gates(heads, start=settings.start).to(device) for _ in settings.left]
    targets = [Target(count, steps=settings.ramp).to(device) for count in settings.left]
    adam = torch.optim.Adam([gate.log_a for gate in gates], lr=settings.rate)
    subject.model.eval()
    with frozen(subject.model), valve(subject, torch.ones(len(heads), device=device)) as opened:
        for step in range(settings.steps):
            picked = torch.randint(len(rows), (settings.rows,), device=device)
            drawn = torch.stack([gate() for gate in gates])
            opened.scales = drawn.repeat_interleave(settings.rows, dim=0)
            loss = _loss(subject.model, rows, width, picked.repeat(len(gates)), len(gates))
            price = torch.stack(
                [target(gate, step) for gate, target in zip(gates, targets, strict=True)]
            )
            adam.zero_grad()
            (loss + price.sum()).backward()
            adam.step()
    return _points(gates, settings.left), _told(gates, settings.left)


def _loss(model: Any, rows: Encoded, width: int, picked: Tensor, sets: int) -> Tensor:
    """The loss of every set on the same rows, added up."""
    batch = rows.batch(width, picked)
    with half(rows.ids.device):
        logits = logits_of(model, batch)
    return sets * cross_entropy(logits.float(), batch.gold)


def _points(gates: list[Gates], left: list[int]) -> list[Point]:
    points, before = [], set[Any]()
    for step, (gate, count) in enumerate(zip(gates, left, strict=True), start=1):
        gone = tuple(gate.closed(count))
        removed = tuple(head for head in gone if head not in before)
        points.append(Point("gates", step, count, gone, removed))
        before = set(gone)
    return points


def _told(gates: list[Gates], left: list[int]) -> list[dict[str, Any]]:
    """How many gates were asked for, are expected open, and would be open by themselves."""
    return [
        {"asked": count, "expected": round(gate.expected().item(), 2), "open": len(gate.kept())}
        for gate, count in zip(gates, left, strict=True)
    ]
