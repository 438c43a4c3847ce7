"""A window's own words, without room for the rest of a long text."""

from __future__ import annotations

import torch
from torch import Tensor

from headcount.text.words import Words

__all__ = ["closed_up", "places_of"]


def closed_up(words: Words) -> Words:
    """The words that are there, moved up to the front of each row, in their order.

    A window keeps the numbering of its whole text, which may have thousands of words; maps between
    words would be as large. `places_of` says where each word went.

    >>> pieces = torch.tensor([[[False, False], [True, False], [False, False], [False, True]]])
    >>> closed_up(Words(pieces, pieces.any(-1), [None])).pieces.int().tolist()
    [[[1, 0], [0, 1]]]
    """
    order = torch.argsort((~words.there).int(), dim=1, stable=True)
    most = int(words.there.sum(1).max()) if words.there.numel() else 0
    order = order[:, :most]
    pieces = words.pieces.gather(1, order[..., None].expand(-1, -1, words.pieces.shape[-1]))
    return Words(pieces, words.there.gather(1, order), [None] * len(words))


def places_of(words: Words) -> Tensor:
    """Where `closed_up` puts each word, ``[batch, word]``; nothing of use for words not there."""
    return words.there.long().cumsum(1) - 1
