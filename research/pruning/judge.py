"""Many sets of heads judged at once: every row of a batch runs with the heads of its own set."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

import headcount as hc
from headcount.records.heads import Head
from headcount.tasks import Outcome
from headcount.tasks.task import ACCURACY
from headcount.wiring.valves import valve
from research.glue.encoded import Encoded, width_of
from research.glue.model import logits_of

__all__ = ["judged"]

WIDTHS = tuple(range(16, 129, 8))


@torch.no_grad()
def judged(
    subject: hc.Subject, rows: Encoded, sets: Sequence[Sequence[Head]], batch: int
) -> list[Outcome]:
    """Accuracy with each set of heads shut, right or wrong kept by example; `batch` rows a pass."""
    place = {head: number for number, head in enumerate(subject.heads)}
    scales = torch.ones(len(sets), len(place), device=rows.ids.device)
    for number, gone in enumerate(sets):
        scales[number, [place[head] for head in gone]] = 0.0
    right = torch.zeros(len(sets), len(rows), device=rows.ids.device)
    order = rows.lengths.argsort(stable=True)
    subject.model.eval()
    with valve(subject, scales[0]) as opened:
        for part in order.split(min(batch, len(rows))):
            width = width_of(int(rows.lengths[part[-1]]), WIDTHS)
            for some in torch.arange(len(sets)).split(max(1, batch // len(part))):
                opened.scales = scales[some].repeat_interleave(len(part), dim=0)
                right[some[:, None], part] = _right(subject, rows, width, part, len(some))
    found = right.double().cpu().numpy()
    return [Outcome(ACCURACY, np.stack([each, np.ones_like(each)], axis=1)) for each in found]


def _right(subject: hc.Subject, rows: Encoded, width: int, part: Tensor, sets: int) -> Tensor:
    """Right or wrong, `[set, row]`."""
    told = logits_of(subject.model, rows.batch(width, part.repeat(sets))).argmax(dim=1)
    return (told.view(sets, -1) == rows.gold[part]).float()
