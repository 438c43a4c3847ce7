"""Where a word stands: how many words come before and after it, and whether it is one piece.

Attention falls off with distance, early words of a causal model are seen by more rows than late
ones, and a word of three pieces is given the sum of three weights. What kind of word it is must
not be taken for any of that, so words are compared with words that stand alike.
"""

from __future__ import annotations

import torch
from torch import Tensor

from headcount.text.side import Side

__all__ = ["STANDINGS", "compared_words", "standings"]

#: Words before, words after, pieces: each is counted up to the next of these.
_BEFORE, _AFTER, _PIECES = (0, 1, 2, 3, 5, 9), (0, 1, 2, 5, 10), (1, 2)

#: How many standings there are.
STANDINGS = len(_BEFORE) * len(_AFTER) * len(_PIECES)


def standings(there: Tensor, pieces: Tensor) -> Tensor:
    """The standing of each word, ``[batch, word]``; `pieces` is how many tokens it has.

    >>> there = torch.tensor([[True, True, True, False]])
    >>> standings(there, torch.tensor([[1, 1, 3, 0]])).tolist()
    [[4, 12, 21, 0]]
    """
    before = there.cumsum(-1) - 1
    after = there.sum(-1, keepdim=True) - 1 - before
    found = torch.zeros_like(before)
    for count, edges in ((before, _BEFORE), (after, _AFTER), (pieces, _PIECES)):
        bounds = torch.tensor(edges[1:], device=there.device)
        found = found * len(edges) + torch.bucketize(count, bounds, right=True)
    return found.masked_fill(~there, 0)


def compared_words(keys: Side) -> Tensor:
    """The words that are compared, bool ``[batch, word]``: not one that starts the text.

    Where no special token stands before it, the first token is where heads rest, whatever it says.
    """
    assert keys.words is not None
    first = keys.real & (keys.real.cumsum(-1) == 1) & ~keys.special
    return keys.words.there & ~(keys.words.pieces & first[:, None]).any(-1)
