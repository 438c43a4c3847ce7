"""A language model reading rows: its logits, and each row's loss with heads shut."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

import headcount as hc
from headcount.records.heads import Head
from headcount.tasks import Outcome
from headcount.tasks.task import LOSS
from headcount.wiring.valves import valve

__all__ = ["losses", "outcome", "read", "row_losses"]


def read(model: Any, ids: Tensor) -> Tensor:
    """Logits of full rows.

    The attention mask has four axes already, so that nothing needs to be looked into: a device
    that records cannot be looked into.
    """
    length = ids.shape[1]
    mask = torch.ones(length, length, dtype=torch.bool, device=ids.device).tril()
    mask = mask.expand(len(ids), 1, length, length)
    places = torch.arange(length, device=ids.device).expand(len(ids), length)
    found = model(input_ids=ids, attention_mask=mask, position_ids=places, use_cache=False)
    logits: Tensor = found.logits
    return logits


def row_losses(model: Any, ids: Tensor) -> Tensor:
    """Nats of each row, summed over its tokens but the first: `[row]`."""
    logits = read(model, ids)[:, :-1].float().flatten(0, 1)
    each = cross_entropy(logits, ids[:, 1:].flatten(), reduction="none")
    return each.view(len(ids), -1).sum(1)


@torch.no_grad()
def losses(
    subject: hc.Subject, ids: Tensor, sets: Sequence[Sequence[Head]], batch: int
) -> np.ndarray:
    """Nats of every row with each set of heads shut, `[set, row]`."""
    scales = torch.ones(len(sets), len(subject.heads), device=ids.device)
    place = {head: number for number, head in enumerate(subject.heads)}
    for number, gone in enumerate(sets):
        scales[number, [place[head] for head in gone]] = 0.0
    subject.model.eval()
    found = []
    with valve(subject, scales[0]) as opened:
        for scale in scales:
            opened.scales = scale
            parts = [row_losses(subject.model, part) for part in ids.split(batch)]
            found.append(torch.cat(parts).double().cpu())
    return torch.stack(found).numpy()


def outcome(nats: np.ndarray, length: int) -> Outcome:
    """The losses of rows as an outcome: nats a token."""
    tokens = np.full_like(nats, length - 1)
    return Outcome(LOSS, np.stack([nats, tokens], axis=1))
