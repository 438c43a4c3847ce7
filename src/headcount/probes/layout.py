"""The layout of a probe's maps: what stands for ROOT first, then the words.

Clark et al. 2019, section 5, read ROOT's score off the attention to [CLS] and [SEP]. What stands
for them in other models:

- start: the first special token in front of the words ([CLS], <s>, a language code);
- end: the last special token behind them ([SEP], </s>);
- where a model puts neither (GPT-2, SmolLM2), start is the first token of the text, which is where
  heads of such models rest.

What is not there gives 0.
"""

from __future__ import annotations

import torch
from torch import Tensor

from headcount.errors import InputError
from headcount.text.side import Side
from headcount.text.words import Words

__all__ = ["END", "EXTRA", "START", "placed"]

#: Places before the first word.
START, END, EXTRA = 0, 1, 2


def placed(side: Side) -> Words:
    """Start, end and the words of a side, as words; `word_maps` makes a probe's maps of them."""
    if side.words is None:
        raise InputError(
            "The words of this treebank cannot be found among the tokens: this tokenizer does not "
            "tell where its tokens stand; use its fast version."
        )
    start, end = _ends(side, side.words.pieces.any(1))
    pieces = torch.cat([start[:, None], end[:, None], side.words.pieces], dim=1)
    return Words(pieces, pieces.any(-1), side.words.sentences)


def _ends(side: Side, of_words: Tensor) -> tuple[Tensor, Tensor]:
    """Bool ``[batch, token]`` each: the tokens that stand for ROOT."""
    special = side.special & side.real
    before = ~(of_words.cumsum(1) > 0)
    behind = ~(of_words.flip(1).cumsum(1).flip(1) > 0)
    start = _first(special & before)
    end = _first((special & behind).flip(1)).flip(1)
    bare = ~(start.any(1) | end.any(1))
    return start | (_first(side.real) & bare[:, None]), end


def _first(where: Tensor) -> Tensor:
    """Only the first True of each row."""
    return where & (where.cumsum(1) == 1)
