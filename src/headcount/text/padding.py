"""Examples padded into a batch, by hand: a tokenizer without a padding token stays so."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from headcount.errors import ModelError
from headcount.text.alignment import Placed
from headcount.text.batch import Batch
from headcount.text.fit import Example
from headcount.text.intake import Intake, Shift
from headcount.text.rows import Row
from headcount.text.side import Side, side_of, spread
from headcount.text.specials import separator_ids
from headcount.text.vocabulary import Vocabulary, vocabulary_of

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

__all__ = ["Padder", "positions"]

_IGNORED = -100


class Padder:
    """Makes batches for one model from one tokenizer's rows."""

    def __init__(
        self,
        tokenizer: PreTrainedTokenizerBase,
        intake: Intake,
        *,
        left: bool = False,
        words: bool = False,
    ) -> None:
        self._intake = intake
        self._left = left
        self._words = words
        self._separators = separator_ids(tokenizer)
        self._pad_id = _pad_id(tokenizer, intake)
        self._source = vocabulary_of(tokenizer)
        self._target = vocabulary_of(tokenizer, target=True)

    def batch(self, examples: Sequence[Example], side: str) -> Batch:
        """The batch of some examples, whose rows are the source or the target side."""
        rows = [example.row for example in examples]
        sides = {side: self._side(rows, self._source, [each.words for each in examples])}
        inputs = self._inputs(rows, sides[side])
        labels = [example.labels for example in examples if example.labels is not None]
        told = None
        if labels:
            sides["target"], told = self._decoder(labels, [each.label_words for each in examples])
            inputs["decoder_input_ids"] = sides["target"].ids
            inputs["decoder_attention_mask"] = sides["target"].real.long()
        elif self._intake.shift is not None:
            # The decoder must get something even where only the encoder is looked at.
            inputs["decoder_input_ids"] = self._intake.shift(_first_tokens(rows))
        return Batch(
            inputs=inputs,
            sides=sides,
            index=[example.index for example in examples],
            window=[example.window for example in examples],
            labels=told,
        )

    def _side(
        self, rows: Sequence[Row], vocabulary: Vocabulary, words: Sequence[Placed | None]
    ) -> Side:
        return side_of(
            rows,
            vocabulary,
            separators=self._separators,
            pad_id=self._pad_id,
            left=self._left,
            words=words if self._words else None,
        )

    def _inputs(self, rows: Sequence[Row], side: Side) -> dict[str, Tensor]:
        inputs = {"input_ids": side.ids, "attention_mask": side.real.long()}
        if rows[0].types is not None and self._intake.accepts("token_type_ids"):
            types = np.fromiter(chain.from_iterable(row.types or () for row in rows), np.int64)
            inputs["token_type_ids"] = spread(types, side.real.numpy(), 0)
        if self._left and self._intake.needs_positions:
            inputs["position_ids"] = positions(side.real)
        return inputs

    def _decoder(
        self, labels: Sequence[Row], words: Sequence[Placed | None]
    ) -> tuple[Side, Tensor]:
        """The decoder's side, and its labels in the same places."""
        assert self._intake.shift is not None  # only an encoder-decoder has labels
        started = _started(labels, self._intake.shift)
        side = self._side(started, self._target, words)
        ids = np.fromiter(chain.from_iterable(row.ids for row in labels), np.int64)
        return side, spread(ids, side.real.numpy(), _IGNORED)


def positions(real: Tensor) -> Tensor:
    """Positions of the real tokens counted from 0, on whichever side the padding stands.

    >>> positions(torch.tensor([[False, True, True], [True, True, True]])).tolist()
    [[0, 0, 1], [0, 1, 2]]
    """
    return (real.long().cumsum(dim=1) - 1).clamp(min=0)


def _started(labels: Sequence[Row], shift: Shift) -> list[Row]:
    """Labels as the decoder reads them: started by the model's own rule, and no longer.

    A shifted row is as long as its labels; what the shift leaves behind that is padding.
    """
    width = max(len(row.ids) for row in labels)
    padded = torch.tensor([[*row.ids, *[_IGNORED] * (width - len(row.ids))] for row in labels])
    shifted = shift(padded).tolist()
    return [_start(row, ids[: len(row.ids)]) for row, ids in zip(labels, shifted, strict=True)]


def _start(labels: Row, ids: list[int]) -> Row:
    if ids[1:] != list(labels.ids[:-1]):
        raise ModelError(
            "The model's own decoder input is not its labels moved by one place, so it is not "
            "known which token stands where; pass ready inputs instead."
        )
    places = None if labels.places is None else [None, *labels.places[:-1]]
    return Row(ids, [1, *labels.special[:-1]], places=places)


def _first_tokens(rows: Sequence[Row]) -> Tensor:
    return torch.tensor([row.ids[:1] for row in rows])


def _pad_id(tokenizer: PreTrainedTokenizerBase, intake: Intake) -> int:
    """An id to pad with; any will do under the attention mask, but some models look at it."""
    for number in (intake.pad_id, tokenizer.pad_token_id, tokenizer.eos_token_id):
        if number is not None and number >= 0:
            return int(number)
    return 0
