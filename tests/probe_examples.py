"""Examples for probes: random maps between the words of random trees."""

from __future__ import annotations

import random

import torch

from headcount.rooms.probing.data import ProbeExample

HEADS, ROWS = 3, 7


def example(words: int, seed: int = 0, heads: int = HEADS) -> ProbeExample:
    """A sentence of so many words with a random tree, maps whose rows sum to 1, word rows."""
    draw, order = torch.Generator().manual_seed(seed), random.Random(seed)
    gold = [order.choice([j for j in range(words + 1) if j != i + 1]) for i in range(words)]
    maps = torch.rand(heads, words + 2, words + 2, generator=draw)
    return ProbeExample(
        index=seed,
        forms=tuple(f"w{number}" for number in range(1, words + 1)),
        heads=torch.tensor(gold),
        scored=torch.arange(words) != words - 1,
        words=torch.randint(0, ROWS, (words,), generator=draw),
        maps=(4 * maps).softmax(-1),
    )


def vectors(width: int = 5, seed: int = 0) -> torch.Tensor:
    """A table of vectors whose row 0 is zero."""
    table = torch.randn(ROWS, width, generator=torch.Generator().manual_seed(seed))
    table[0] = 0
    return table
