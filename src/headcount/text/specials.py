"""Special tokens: which ids are special, which separate, and look-alikes written in a text.

Whether a *place* is special is the tokenizer's word (its special-tokens mask), never the look of
the token: a sentence that holds "</s>" or "[SEP]" makes no separator. Fast Unigram tokenizers and
the Python WordPiece nevertheless give such a text the id of the real thing; here it is spelt out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import compress
from typing import TYPE_CHECKING, TypeVar

from headcount.text.rows import Row

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

T = TypeVar("T")

__all__ = ["lookalikes", "separator_ids", "special_ids", "spelt_out"]


def special_ids(tokenizer: PreTrainedTokenizerBase) -> frozenset[int]:
    """Every id that means something to the model rather than text; the unknown token is text."""
    named = set(tokenizer.all_special_ids)
    added = {number for number, token in tokenizer.added_tokens_decoder.items() if token.special}
    return frozenset((named | added) - {tokenizer.unk_token_id})


def separator_ids(tokenizer: PreTrainedTokenizerBase) -> tuple[int, ...]:
    """The separator's id: the tokenizer's own separator, else its end of sentence, else none."""
    for number in (tokenizer.sep_token_id, tokenizer.eos_token_id):
        if number is not None:
            return (number,)
    return ()


def lookalikes(row: Row, specials: frozenset[int]) -> int:
    """How many tokens of the text itself carry a special id."""
    known = specials.__contains__
    return sum(map(known, row.ids)) - sum(map(known, compress(row.ids, row.special)))


def spelt_out(row: Row, spelling: Mapping[int, list[int]]) -> Row:
    """The row with each look-alike replaced by the ids of its characters.

    >>> spelt_out(Row([1, 5, 2, 2], [1, 0, 0, 1]), {2: [60, 47]}).ids
    [1, 5, 60, 47, 2]
    """
    ids: list[int] = []
    special: list[int] = []
    counts: list[int] = []
    for number, added in zip(row.ids, row.special, strict=True):
        letters = [number] if added else spelling.get(number, [number])
        ids += letters
        special += [added] * len(letters)
        counts.append(len(letters))
    return replace(
        row,
        ids=ids,
        special=special,
        types=None if row.types is None else _repeated(row.types, counts),
        places=None if row.places is None else _repeated(row.places, counts),
    )


def _repeated(values: Sequence[T], counts: Sequence[int]) -> list[T]:
    """Each value as often as its count says: the letters of a look-alike share its place."""
    return [value for value, count in zip(values, counts, strict=True) for _ in range(count)]
