"""Words instead of pieces: which tokens a word has, and attention between words.

Clark et al. 2019, section 4.1: attention to a word is the sum over its pieces, attention from a
word the mean over its pieces.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import torch
from torch import Tensor

from headcount.errors import UsageError
from headcount.text.sentence import Sentence

if TYPE_CHECKING:
    from headcount.text.side import Side

__all__ = ["Rows", "Words", "with_specials", "word_maps", "word_maps_with_specials"]

#: How the rows of a word's pieces become one row.
Rows = Literal["mean", "first", "max"]


@dataclass(frozen=True)
class Words:
    """The words of one side of a batch.

    Word k of a row's sentence is column k of `pieces`, also in a window of that sentence. Where
    two words are written as one (German *zum*) a token may belong to both.
    """

    #: Bool ``[batch, word, token]``: which tokens belong to a word.
    pieces: Tensor
    #: Bool ``[batch, word]``: the word has all its tokens in this row. False for padding, and
    #: for a word without a token, cut off, or torn between two windows: that has no piece here.
    there: Tensor
    #: The annotated sentence of each row.
    sentences: list[Sentence | None]

    def __len__(self) -> int:
        return len(self.sentences)

    def to(self, device: torch.device | str) -> Words:
        """The same words on a device."""
        return replace(
            self,
            pieces=self.pieces.to(device, non_blocking=True),
            there=self.there.to(device, non_blocking=True),
        )


def word_maps(maps: Tensor, queries: Words, keys: Words, *, rows: Rows = "mean") -> Tensor:
    """Attention between words, ``[batch, head, query word, key word]``; special tokens left out.

    Columns are summed over a word's pieces. Rows are averaged; ``first`` takes the row of the
    first piece, ``max`` the largest weight of any piece, scaled so that a row with all tokens
    sums to 1 (both from Clark et al.'s program). A word that is not there has zeros.

    >>> pieces = torch.tensor([[[True, False, False], [False, True, True]]])
    >>> words = Words(pieces, pieces.any(-1), [None])
    >>> maps = torch.tensor([[[[0.5, 0.2, 0.3], [0.1, 0.6, 0.3], [0.3, 0.3, 0.4]]]])
    >>> word_maps(maps, words, words).squeeze().tolist()
    [[0.5, 0.5], [0.2..., 0.8...]]
    """
    if rows not in ("mean", "first", "max"):
        raise UsageError(f"rows is '{rows}'; choose mean, first or max.")
    columns = _columns(maps, queries, keys)
    if rows == "mean":
        return _averaged(columns, queries)
    if rows == "first":
        return _piece_rows(columns, queries.pieces, 0)
    found = _largest(columns, queries.pieces)
    rest = _largest(_outside(maps, queries, keys), queries.pieces)
    total = found.sum(-1, keepdim=True) + rest.sum(-1, keepdim=True)
    return found / total.masked_fill(total == 0, 1)


def word_maps_with_specials(
    maps: Tensor, queries: Side, keys: Side, *, rows: Rows = "mean"
) -> Tensor:
    """Attention between words in Clark et al.'s layout: special tokens are words of one piece.

    The columns are those of `with_specials`, so [CLS] comes first and [SEP] last.
    """
    return word_maps(maps, with_specials(queries), with_specials(keys), rows=rows)


def with_specials(side: Side) -> Words:
    """A side's words and special tokens together, in the order of the text, padding behind.

    Every word of the sentence keeps a column, in order, whether it is there or not.
    """
    if side.words is None:
        raise UsageError("This side has no words; give a treebank, or parse the text first.")
    special = side.special & side.real
    width = special.shape[1]
    own = torch.eye(width, dtype=torch.bool, device=special.device) & special[:, None]
    pieces = torch.cat([side.words.pieces, own], dim=1)
    order = torch.argsort(_sort_keys(side.words, special), dim=1, stable=True)
    pieces = torch.gather(pieces, 1, order[..., None].expand_as(pieces))
    most = int((_word_counts(side.words) + special.sum(1)).max())
    pieces = pieces[:, :most]
    return Words(pieces, pieces.any(-1), side.words.sentences)


def _columns(maps: Tensor, queries: Words, keys: Words) -> Tensor:
    """Weights summed over each key word's pieces, ``[batch, head, query token, key word]``."""
    batch, heads, tokens, others = maps.shape
    # One product for all heads of a text: thrice as fast as a product for each head.
    pieces = keys.pieces.to(maps.dtype).transpose(1, 2)
    found = torch.bmm(maps.reshape(batch, heads * tokens, others), pieces)
    found = found.view(batch, heads, tokens, pieces.shape[-1])
    # Rows of padding hold no meaning, not even a number.
    return found.masked_fill(~queries.pieces.any(1)[:, None, :, None], 0)


def _outside(maps: Tensor, queries: Words, keys: Words) -> Tensor:
    """Weights on tokens that belong to no word."""
    loose = ~keys.pieces.any(1)
    used = queries.pieces.any(1)
    return maps.masked_fill(~(used[:, None, :, None] & loose[:, None, None]), 0)


def _averaged(columns: Tensor, queries: Words) -> Tensor:
    """Rows averaged over each query word's pieces."""
    batch, heads, tokens, words = columns.shape
    pieces = queries.pieces.to(columns.dtype)
    shares = pieces / pieces.sum(-1, keepdim=True).clamp(min=1)
    side_by_side = columns.transpose(1, 2).reshape(batch, tokens, heads * words)
    found = torch.bmm(shares, side_by_side)
    return found.view(batch, shares.shape[1], heads, words).transpose(1, 2)


def _piece_rows(columns: Tensor, pieces: Tensor, number: int) -> Tensor:
    """The row of each word's piece of this number; zeros where it has fewer."""
    wanted = pieces & (pieces.cumsum(-1) == number + 1)
    place = wanted.int().argmax(-1)[:, None, :, None]
    shape = (columns.shape[0], columns.shape[1], pieces.shape[1], columns.shape[-1])
    rows = torch.gather(columns, 2, place.expand(shape))
    return rows.masked_fill(~wanted.any(-1)[:, None, :, None], 0)


def _largest(columns: Tensor, pieces: Tensor) -> Tensor:
    found = _piece_rows(columns, pieces, 0)
    for number in range(1, int(pieces.sum(-1).max()) if pieces.numel() else 0):
        found = torch.maximum(found, _piece_rows(columns, pieces, number))
    return found


def _word_counts(words: Words) -> Tensor:
    counts = [len(sentence.words or ()) if sentence else 0 for sentence in words.sentences]
    return torch.tensor(counts, device=words.there.device)


def _sort_keys(words: Words, special: Tensor) -> Tensor:
    """Where each word and each special token stands; a word that is not there follows the last."""
    end = 2 * special.shape[1]
    first = 2 * words.pieces.int().argmax(-1) + 1
    first = first.masked_fill(~words.there, 1)
    first = first.cummax(1).values if first.shape[1] else first
    beyond = torch.arange(first.shape[1], device=first.device) >= _word_counts(words)[:, None]
    tokens = 2 * torch.arange(special.shape[1], device=special.device).expand_as(special)
    return torch.cat([first.masked_fill(beyond, end), tokens.masked_fill(~special, end)], dim=1)
