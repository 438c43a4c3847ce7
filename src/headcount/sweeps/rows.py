"""Rows of batches: the same batch several times over, or some of its examples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from typing import Any

import torch
from torch import Tensor

from headcount.text.batch import Batch
from headcount.text.side import Side

__all__ = ["picked", "repeated", "rows_an_example"]


def rows_an_example(batch: Batch) -> int:
    """How many rows of the model's input an example has: two where pairs are compared."""
    rows = next((len(tensor) for tensor in batch.inputs.values()), len(batch.index))
    return rows // max(1, len(batch.index))


def repeated(batch: Batch, copies: int) -> Batch:
    """A batch so many times over, one below the other.

    >>> repeated(Batch({"input_ids": torch.tensor([[5], [6]])}, {}, [0, 1]), 2).index
    [0, 1, 0, 1]
    """
    if copies == 1:
        return batch
    places = list(range(len(batch))) * copies
    return picked(batch, places)


def picked(batch: Batch, places: Sequence[int]) -> Batch:
    """Some examples of a batch, in the order of their places; padding stays as it is."""
    each = rows_an_example(batch)
    rows = [place * each + part for place in places for part in range(each)]

    def pick(values: Any) -> Any:
        at = rows if len(values) == len(batch) * each else places
        if isinstance(values, Tensor):
            return values[torch.tensor(at, device=values.device)]
        return [values[place] for place in at]

    return replace(
        batch,
        inputs={name: pick(tensor) for name, tensor in batch.inputs.items()},
        sides={name: _picked_side(side, pick) for name, side in batch.sides.items()},
        index=[batch.index[place] for place in places],
        window=pick(batch.window) if batch.window else [],
        labels=None if batch.labels is None else pick(batch.labels),
    )


def _picked_side(side: Side, pick: Callable[[Any], Any]) -> Side:
    """A side with some of its rows; words are not kept, since no task asks for them."""
    values = {field.name: getattr(side, field.name) for field in fields(side)}
    kept: dict[str, Any] = {
        name: pick(value) for name, value in values.items() if isinstance(value, Tensor | list)
    }
    return replace(side, words=None, **kept)
