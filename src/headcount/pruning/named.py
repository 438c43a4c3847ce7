"""The heads that a call means, however it names them: names, layers, rows of a table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from headcount.errors import UsageError
from headcount.head_sets import check_head_set, heads_named
from headcount.heads import Head, check_stack, parse_heads

__all__ = ["Heads", "named_heads"]

#: Names, one head, layers with their heads, or rows of a table.
Heads = str | Head | Iterable[str | Head] | Mapping[Any, Any] | pd.DataFrame | pd.Series


def named_heads(heads: Heads, known: Sequence[Head]) -> list[Head]:
    """Read heads as they are given: they need not exist, and may be named twice.

    >>> known = [Head("enc", layer, index) for layer in (0, 1) for index in (0, 1)]
    >>> [str(head) for head in named_heads({0: [1], 1: [0, 1]}, known)]
    ['enc.0.1', 'enc.1.0', 'enc.1.1']
    >>> named_heads("enc.1", known) == named_heads({"enc": {1: [0, 1]}}, known)
    True
    """
    if isinstance(heads, str):
        return [head for word in check_head_set(heads) for head in heads_named(word, known)]
    if isinstance(heads, Head):
        return [heads]
    if isinstance(heads, Mapping):
        return _of_mapping(heads, known)
    if isinstance(heads, pd.DataFrame | pd.Series):
        return parse_heads(_rows(heads))
    if not isinstance(heads, Iterable):
        raise UsageError(
            f"{heads!r} names no heads; give names (['enc.0.1']), layers with their heads "
            "({0: [1, 2]}), or rows of a table's frame."
        )
    return parse_heads(heads)


def _rows(rows: pd.DataFrame | pd.Series) -> list[Any]:
    """The heads of a frame's rows; of a column of true and false those that are true."""
    if isinstance(rows, pd.DataFrame):
        return list(rows.index)
    if rows.dtype != bool:
        raise UsageError(
            f"The column '{rows.name}' holds {rows.dtype} numbers, and says of no head whether it "
            "goes; compare it with something (column < 0.1), or take the index of some rows."
        )
    return list(rows.index[rows])


def _of_mapping(heads: Mapping[Any, Any], known: Sequence[Head]) -> list[Head]:
    """Layers with their heads, those by stack, or scales by head as a valve takes them."""
    if any("." in str(key) or isinstance(key, tuple) for key in heads):
        return _of_scales(heads)
    stacks = list(dict.fromkeys(head.stack for head in known))
    by_stack = heads
    if all(str(key).isdigit() for key in heads):
        if len(stacks) > 1:
            raise UsageError(
                f"The model has the stacks {', '.join(stacks)}; say which is meant, e.g. "
                f"{{'{stacks[0]}': {{0: [1]}}}}."
            )
        by_stack = {stacks[0]: heads}
    return [head for stack, layers in by_stack.items() for head in _of_layers(stack, layers)]


def _of_layers(stack: str, layers: Any) -> list[Head]:
    check_stack(stack)
    if not isinstance(layers, Mapping) or not all(_is_list(one) for one in layers.values()):
        raise UsageError(f"{layers!r} is no mapping of layers to heads; write it as {{0: [1, 2]}}.")
    named = [f"{stack}.{layer}.{index}" for layer in layers for index in layers[layer]]
    return parse_heads(named)


def _is_list(indices: Any) -> bool:
    return isinstance(indices, Iterable) and not isinstance(indices, str)


def _of_scales(scales: Mapping[Any, Any]) -> list[Head]:
    """Heads with the scale 0: what a valve shuts can be removed; one half open cannot."""
    for name, scale in scales.items():
        if not isinstance(scale, int | float) or scale != 0:
            raise UsageError(
                f"{name} has the scale {scale!r}; a head is removed where its scale is 0, and any "
                "other is for hc.valve."
            )
    return parse_heads(scales)
