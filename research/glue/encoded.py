"""Rows as tensors: tokenised once, held on the device, laid out in batches of like length."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import torch
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from headcount.tasks import Labelled

__all__ = ["Batch", "Encoded", "encode", "lay_epoch", "width_of"]

Laid = tuple[int, Tensor]


@dataclass(frozen=True)
class Batch:
    """Tensors `[row, place]` of one width, and what to say of each row; weight 0 is filling."""

    ids: Tensor
    types: Tensor
    real: Tensor
    gold: Tensor
    weight: Tensor

    def clone(self) -> Batch:
        """A copy with memory of its own."""
        return Batch(*(getattr(self, part.name).clone() for part in fields(self)))

    def copy_(self, other: Batch) -> None:
        """Take the values of another batch of the same shape."""
        for part in fields(self):
            getattr(self, part.name).copy_(getattr(other, part.name))


@dataclass(frozen=True)
class Encoded:
    """All rows of a split, `[row, place]`, padded to the longest."""

    ids: Tensor
    types: Tensor
    lengths: Tensor
    gold: Tensor

    def __len__(self) -> int:
        return len(self.ids)

    def to(self, device: torch.device | str) -> Encoded:
        """The same rows in another place."""
        return Encoded(*(getattr(self, part.name).to(device) for part in fields(self)))

    def batch(self, width: int, rows: Tensor) -> Batch:
        """The rows with these numbers, cut to a width; -1 is filling."""
        picked = rows.clamp(min=0)
        places = torch.arange(width, device=rows.device)
        return Batch(
            ids=_wide(self.ids[picked], width).long(),
            types=_wide(self.types[picked], width).long(),
            real=places < self.lengths[picked][:, None],
            gold=self.gold[picked],
            weight=(rows >= 0).float(),
        )


def encode(
    rows: Sequence[Labelled],
    tokenizer: PreTrainedTokenizerBase,
    labels: Sequence[str],
    longest: int,
) -> Encoded:
    """Tokenise rows, one text or a pair each, cut to the longest width."""
    seconds = [str(row.second) for row in rows] if rows[0].second is not None else None
    found = tokenizer(
        [row.text for row in rows],
        seconds,
        truncation=True,
        max_length=longest,
        return_token_type_ids=True,
        return_attention_mask=False,
    )
    gold = [labels.index(str(row.label)) if labels else float(row.label) for row in rows]
    return Encoded(
        ids=_padded(found["input_ids"], tokenizer.pad_token_id),
        types=_padded(found["token_type_ids"], 0),
        lengths=torch.tensor([len(piece) for piece in found["input_ids"]]),
        gold=torch.tensor(gold),
    )


def lay_epoch(
    lengths: Tensor, widths: Sequence[int], batch: int, dice: torch.Generator
) -> list[Laid]:
    """Every row once: batches of like length in random order, each with its width.

    What does not fill a batch waits for the next width; the very last batch is filled with -1.

    >>> laid = lay_epoch(torch.tensor([3, 9, 4, 8]), (4, 12), 2, torch.Generator())
    >>> sorted((width, sorted(rows.tolist())) for width, rows in laid)
    [(4, [0, 2]), (12, [1, 3])]
    """
    order = torch.randperm(len(lengths), generator=dice)
    needed, waiting, laid = lengths[order], order[:0], []
    for low, width in zip((0, *widths), widths, strict=False):
        members = torch.cat([waiting, order[(needed > low) & (needed <= width)]])
        whole = len(members) // batch * batch
        laid += [(width, rows) for rows in members[:whole].split(batch)] if whole else []
        waiting = members[whole:]
    if len(waiting):
        filling = waiting.new_full((batch - len(waiting),), -1)
        laid.append((width_of(int(lengths[waiting].max()), widths), torch.cat([waiting, filling])))
    return [laid[place] for place in torch.randperm(len(laid), generator=dice).tolist()]


def width_of(length: int, widths: Sequence[int]) -> int:
    """The least width that holds a length.

    >>> width_of(17, (16, 32))
    32
    """
    return next(width for width in widths if width >= length)


def _padded(pieces: Sequence[list[int]], value: int) -> Tensor:
    longest = max(map(len, pieces))
    rows = [piece + [value] * (longest - len(piece)) for piece in pieces]
    return torch.tensor(rows, dtype=torch.int32)


def _wide(held: Tensor, width: int) -> Tensor:
    """The first places; where the split's longest row is shorter, zeros behind it."""
    return torch.nn.functional.pad(held[:, :width], (0, max(0, width - held.shape[1])))
