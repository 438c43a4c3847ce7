"""One text side of a batch: padded ids, and what stands at each place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from headcount.text.alignment import Placed, words_of
from headcount.text.rows import Row
from headcount.text.vocabulary import Vocabulary
from headcount.text.words import Words

__all__ = ["Side", "bare_side", "side_of", "spread"]


@dataclass(frozen=True)
class Side:
    """One text side of a batch; every tensor is ``[batch, token]``, padding included.

    A place is `special` when the tokenizer put it there (or when it starts a decoder), whatever
    the text says; `separator` marks the special places that end a text, never the first one.
    """

    #: Token ids.
    ids: Tensor
    #: True where there is a token, False on padding.
    real: Tensor
    special: Tensor
    separator: Tensor
    #: True where a token of the text is all Unicode punctuation.
    punctuation: Tensor
    #: True where it is exactly a full stop or a comma.
    stops: Tensor
    #: Tokens as the tokenizer writes them, padding left out.
    tokens: list[list[str]]
    #: False when nothing is known of the tokens, as for ready inputs: a share of such a side's
    #: separators or punctuation is not 0 but unknown.
    annotated: bool = True
    #: The words of an annotated corpus; None for plain text.
    words: Words | None = None

    def __len__(self) -> int:
        return len(self.tokens)

    def to(self, device: torch.device | str) -> Side:
        """The same side on a device."""
        names = ("ids", "real", "special", "separator", "punctuation", "stops")
        moved = {name: getattr(self, name).to(device, non_blocking=True) for name in names}
        return replace(self, **moved, words=self.words and self.words.to(device))


def side_of(
    rows: Sequence[Row],
    vocabulary: Vocabulary,
    *,
    separators: tuple[int, ...],
    pad_id: int,
    left: bool = False,
    words: Sequence[Placed | None] | None = None,
) -> Side:
    """Pad rows into a side and look every token up; `words` belong to an annotated corpus.

    >>> side = side_of([Row([2, 7, 3], [1, 0, 1]), Row([2, 3], [1, 1])],
    ...     Vocabulary(lambda ids: [str(number) for number in ids], "".join),
    ...     separators=(3,), pad_id=0)
    >>> side.ids.tolist(), side.separator.tolist()
    ([[2, 7, 3], [2, 3, 0]], [[False, False, True], [False, True, False]])
    """
    lengths = np.array([len(row.ids) for row in rows], dtype=np.int64)
    ids = _flat([row.ids for row in rows])
    special = _flat([row.special for row in rows]) > 0
    first = np.zeros(len(ids), dtype=bool)
    first[np.cumsum(lengths) - lengths] = True
    punctuation, stops = vocabulary.flags(ids)
    real = _real(lengths, left)

    def padded(values: NDArray[np.bool_]) -> Tensor:
        return spread(values, real, False)

    return Side(
        ids=spread(ids, real, pad_id),
        real=torch.from_numpy(real),
        special=padded(special),
        separator=padded(special & np.isin(ids, separators) & ~first),
        punctuation=padded(punctuation & ~special),
        stops=padded(stops & ~special),
        tokens=[vocabulary.tokens(row.ids) for row in rows],
        words=None if words is None else words_of(rows, words, real),
    )


def bare_side(ids: Tensor, real: Tensor) -> Side:
    """A side of which only ids and padding are known, so it has no tokens to show.

    >>> bare_side(torch.tensor([[5, 6]]), torch.tensor([[True, True]])).annotated
    False
    """
    nothing = torch.zeros_like(real)
    tokens: list[list[str]] = [[] for _ in range(real.shape[0])]
    return Side(ids, real, nothing, nothing, nothing, nothing, tokens, annotated=False)


def spread(values: NDArray[np.generic], real: NDArray[np.bool_], fill: int | bool) -> Tensor:
    """Values one after another, put in the real places of a padded tensor."""
    room = np.full(real.shape, fill, dtype=values.dtype)
    room[real] = values
    return torch.from_numpy(room)


def _flat(rows: Sequence[Sequence[int]]) -> NDArray[np.int64]:
    return np.fromiter(chain.from_iterable(rows), dtype=np.int64)


def _real(lengths: NDArray[np.int64], left: bool) -> NDArray[np.bool_]:
    places = np.arange(lengths.max(initial=0))
    if left:
        return places >= lengths.max(initial=0) - lengths[:, None]
    return places < lengths[:, None]
