"""The tokenised corpus as flat tensors, and batches drawn from it by indexing alone.

A batch row holds several pairs side by side, each in a slot of the same width, so that every
batch has one shape whatever the lengths: `[row, position]` on both sides. Pairs of like length
share a row (the slot widths are the length buckets), and attention stays inside a slot.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from .pieces import EOS, Flat

__all__ = ["IGNORED", "Batch", "Corpus", "Layout", "lay_rows", "most_slots", "slot_widths"]

IGNORED = -100
_SHORTEST = 4  # narrower slots than this are not made


@dataclass(frozen=True)
class Corpus:
    """Pairs as ids end to end; the last pair is empty (source `</s>`, no target) and fills gaps."""

    source: Tensor
    source_start: Tensor
    source_length: Tensor
    target: Tensor
    target_start: Tensor
    target_length: Tensor

    @classmethod
    def build(cls, source: Flat, target: Flat) -> Corpus:
        """Join the two sides of the same pairs."""
        source = (np.append(source[0], np.int16(EOS)), np.append(source[1], np.int32(1)))
        target = (np.append(target[0], np.int16(EOS)), np.append(target[1], np.int32(0)))
        return cls(*_side(*source), *_side(*target))

    def __len__(self) -> int:
        return len(self.source_length) - 1

    def to(self, device: str | torch.device) -> Corpus:
        """The same corpus in another place."""
        moved = {name: value.to(device) for name, value in vars(self).items()}
        return replace(self, **moved)

    @property
    def widths(self) -> Tensor:
        """The slot each pair needs: its longer side. `[pair]`"""
        return torch.maximum(self.source_length, self.target_length)[:-1]

    def batch(self, rows: Tensor, widths: Tensor, length: int, start: int, pad: int) -> Batch:
        """Lay out the pairs `rows[row, slot]` in slots of `widths[row]` positions."""
        position = torch.arange(length, device=rows.device)[None, :]
        slot = position // widths[:, None]
        place = position - slot * widths[:, None]
        inside = slot < rows.shape[1]
        pair = rows.gather(1, slot.clamp(max=rows.shape[1] - 1)).long()
        real = inside & (place < self.source_length[pair])
        source = _read(self.source, self.source_start[pair] + place, real, pad)
        told = inside & (place < self.target_length[pair])
        labels = _read(self.target, self.target_start[pair] + place, told, IGNORED)
        before = torch.roll(labels, 1, dims=1).masked_fill(place == 0, start)
        target = before.masked_fill(before == IGNORED, pad)
        return Batch(source, real, target, labels, slot, place)


@dataclass(frozen=True)
class Batch:
    """Tensors `[row, position]`: ids of both sides, which are real, their slot and place in it."""

    source: Tensor
    real: Tensor
    target: Tensor
    labels: Tensor
    slot: Tensor
    place: Tensor


@dataclass(frozen=True)
class Layout:
    """One epoch: which pairs stand in which row, `[row, slot]`, and each row's slot width."""

    rows: Tensor
    widths: Tensor
    left_out: int  # pairs longer than a row
    tokens: float  # real target tokens in an average full batch

    def to(self, device: str | torch.device) -> Layout:
        """The same layout in another place."""
        return replace(self, rows=self.rows.to(device), widths=self.widths.to(device))


def most_slots(length: int) -> int:
    """How many pairs a row of this length can hold."""
    return max(length // _SHORTEST, 1)


def slot_widths(length: int) -> list[int]:
    """The widths that cut a row into equal slots with little waste, ascending.

    >>> slot_widths(24)
    [4, 6, 8, 12, 24]
    """
    return sorted({length // count for count in range(1, most_slots(length) + 1)})


def lay_rows(
    corpus: Corpus, chosen: Tensor, length: int, batch: int, generator: torch.Generator
) -> Layout:
    """Put the chosen pairs into rows in random order; whole batches, gaps hold the empty pair."""
    empty, most = len(corpus), most_slots(length)
    chosen = chosen[torch.randperm(len(chosen), generator=generator)]
    needed, rows, widths = corpus.widths[chosen], [], []
    for low, width in zip([0, *slot_widths(length)], slot_widths(length), strict=False):
        members = chosen[(needed > low) & (needed <= width)]
        block = _fold(members, length // width, empty, most)
        rows.append(block)
        widths.append(torch.full((len(block),), width))
    order = torch.randperm(sum(map(len, rows)), generator=generator)
    shuffled, widths_ = torch.cat(rows)[order], torch.cat(widths)[order]
    fitting = chosen[needed <= length]
    tokens = corpus.target_length[fitting].sum().item() * batch / max(len(shuffled), 1)
    missing = -len(shuffled) % batch
    filler = torch.full((missing, most), empty)
    return Layout(
        rows=torch.cat([shuffled, filler]).int(),
        widths=torch.cat([widths_, torch.full((missing,), length)]).int(),
        left_out=len(chosen) - len(fitting),
        tokens=tokens,
    )


def _fold(members: Tensor, slots: int, empty: int, most: int) -> Tensor:
    """Members in rows of so many slots, filled up with the empty pair to `[row, most]`."""
    padded = torch.cat([members, members.new_full((-len(members) % slots,), empty)])
    return torch.nn.functional.pad(padded.view(-1, slots), (0, most - slots), value=empty)


def _side(ids: np.ndarray, lengths: np.ndarray) -> tuple[Tensor, Tensor, Tensor]:
    starts = np.concatenate([[0], np.cumsum(lengths[:-1], dtype=np.int64)])
    return torch.from_numpy(ids), torch.from_numpy(starts), torch.from_numpy(lengths)


def _read(flat: Tensor, index: Tensor, real: Tensor, otherwise: int) -> Tensor:
    ids = flat[index.clamp(max=len(flat) - 1)].long()
    return torch.where(real, ids, otherwise)
