"""How much relevance was kept: what reaches each layer's entrance, against what was sent.

At the entrance of a layer the network is cut in two. Everything that was sent must have come
through the cut, apart from what biases above it kept. For an encoder's layer the cut also runs
through the decoder's first entrance; for a decoder's layer, through the encoder's output where
this and later layers read it.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from headcount.lrp.ledger import Ledger

__all__ = ["Flow", "flow_of"]


@dataclass(frozen=True)
class Flow:
    """Relevance at every cut, in the order of the forward.

    `sent` is `[start, row]`, the total of the start; `through` and `biases` are
    `[start, row, cut]`: what came through the cut, and what biases above it kept.
    """

    places: list[tuple[str, int]]
    sent: Tensor
    through: Tensor
    biases: Tensor


def flow_of(ledger: Ledger, found: list[Tensor], sent: Tensor) -> Flow:
    """Read the counters of cuts and biases, in the order in which the ledger has them."""
    counts = iter(found)
    through, beside = [], []
    for cut in ledger.cuts:
        through.append(next(counts))
        beside.append(sum((next(counts) for _ in cut.beside), torch.zeros_like(through[-1])))
    biases = list(counts)
    return Flow(
        [(cut.stack, cut.layer) for cut in ledger.cuts],
        sent,
        torch.stack(_crossing(ledger, through, beside), dim=-1),
        torch.stack(_later(biases), dim=-1),
    )


def _crossing(ledger: Ledger, through: list[Tensor], beside: list[Tensor]) -> list[Tensor]:
    """All relevance through each cut."""
    decoders = [place for place, cut in enumerate(ledger.cuts) if cut.stack == "dec"]
    both = decoders and len(decoders) < len(ledger.cuts)
    rest = through[decoders[0]] if both else torch.zeros_like(through[0])
    later = _later(beside)
    return [
        through[place] + (later[place] if cut.stack == "dec" else rest)
        for place, cut in enumerate(ledger.cuts)
    ]


def _later(counts: list[Tensor]) -> list[Tensor]:
    """Sums of each entry and all that follow it."""
    sums = [torch.zeros_like(counts[0])]
    for count in reversed(counts):
        sums.append(sums[-1] + count)
    return sums[:0:-1]
