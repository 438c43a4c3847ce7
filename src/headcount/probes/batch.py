"""Examples side by side, padded: what a probe scores at once."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad

from headcount.probes.example import UNKNOWN, Example

__all__ = ["ProbeBatch", "batch_of", "in_order", "shuffled"]

#: So many batches are drawn together and sorted by length: little padding, and still at random.
_POOL = 32


@dataclass(frozen=True)
class ProbeBatch:
    """Padded examples; n is the most words that one of them has."""

    #: Gold heads ``[batch, n]``, `UNKNOWN` on padding.
    heads: Tensor
    #: Bool ``[batch, n]``.
    scored: Tensor
    #: Rows of the table of vectors ``[batch, n]``, 0 on padding.
    words: Tensor
    #: Numbers of words ``[batch]``.
    sizes: Tensor
    #: ``[batch, head, 2 + n, 2 + n]`` in float32, 0 on padding.
    maps: Tensor | None

    @property
    def candidates(self) -> Tensor:
        """Bool ``[batch, 1 + n]``: ROOT and the words that are there."""
        places = torch.arange(self.heads.shape[1] + 1, device=self.sizes.device)
        return places <= self.sizes[:, None]


def batch_of(examples: Sequence[Example], device: torch.device | str = "cpu") -> ProbeBatch:
    """Pad examples to one size and put them on a device."""
    most = max(len(example) for example in examples)

    def padded(name: str, fill: float) -> Tensor:
        rows = [getattr(one, name) for one in examples]
        return torch.stack([pad(row, (0, most - len(row)), value=fill) for row in rows]).to(device)

    return ProbeBatch(
        heads=padded("heads", UNKNOWN),
        scored=padded("scored", False),
        words=padded("words", 0),
        sizes=torch.tensor([len(one) for one in examples], device=device),
        maps=_maps(examples, most, device),
    )


def in_order(examples: Sequence[Example], size: int) -> Iterator[Sequence[Example]]:
    """Examples as they come, so many at a time."""
    return (examples[begin : begin + size] for begin in range(0, len(examples), size))


def shuffled(examples: Sequence[Example], size: int, seed: int) -> Iterator[Sequence[Example]]:
    """Examples in random order, those of like length together."""
    draw = random.Random(seed)
    order = draw.sample(list(examples), len(examples))
    groups = [
        group
        for pool in in_order(order, size * _POOL)
        for group in in_order(sorted(pool, key=len), size)
    ]
    draw.shuffle(groups)
    return iter(groups)


def _maps(examples: Sequence[Example], most: int, device: torch.device | str) -> Tensor | None:
    first = examples[0].maps
    if first is None:
        return None
    width = most + first.shape[-1] - len(examples[0])
    room = torch.zeros(len(examples), len(first), width, width, dtype=first.dtype)
    for row, example in zip(room, examples, strict=True):
        assert example.maps is not None
        size = example.maps.shape[-1]
        row[:, :size, :size] = example.maps
    return room.to(device).float()
