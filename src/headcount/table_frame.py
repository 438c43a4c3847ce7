"""Frames of the head table: their index is (stack, layer, head), in the order of heads."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from headcount.columns import Column
from headcount.errors import UsageError
from headcount.heads import STACKS, Head

__all__ = ["INDEX", "head_index", "in_order", "rows_of", "unknown_column"]

#: The levels of a table's index, and the first columns of its Parquet file.
INDEX = ("stack", "layer", "head")


def head_index(heads: Iterable[Head]) -> pd.MultiIndex:
    """The index of these heads; its stacks sort as enc, dec, cross.

    >>> head_index([Head("enc", 0, 1), Head("cross", 0, 0)]).tolist()
    [('enc', 0, 1), ('cross', 0, 0)]
    """
    keys = list(heads)
    layers = sorted({head.layer for head in keys})
    indices = sorted({head.index for head in keys})
    levels: list[list[Any]] = [list(STACKS), layers, indices]
    codes = [[level.index(head[k]) for head in keys] for k, level in enumerate(levels)]
    return pd.MultiIndex(levels=levels, codes=codes, names=list(INDEX))


def in_order(frame: pd.DataFrame) -> pd.DataFrame:
    """A copy with its heads checked and in order, numbers as float64 and words as text."""
    heads = _checked_heads(frame)
    order = sorted(range(len(heads)), key=lambda row: _place(heads[row]))
    data = {str(name): _clean(str(name), frame[name].iloc[order]) for name in frame.columns}
    return pd.DataFrame(data, index=head_index(heads[row] for row in order), columns=list(data))


def rows_of(detail: pd.DataFrame, frame: pd.DataFrame) -> pd.DataFrame:
    """The rows of a finer table that are about the heads of a frame."""
    if not set(INDEX) <= set(detail.columns):
        return detail
    kept = pd.MultiIndex.from_frame(detail[list(INDEX)]).isin(frame.index.tolist())
    return detail.loc[kept].reset_index(drop=True)


def unknown_column(name: str, names: Iterable[str]) -> str:
    """There is no such column: the closest names, else all of them.

    >>> unknown_column("entropi", ["entropy", "self"])
    "There is no column 'entropi'; did you mean entropy?"
    """
    there = list(names)
    close = difflib.get_close_matches(str(name), there, n=3, cutoff=0.6)
    if close:
        return f"There is no column '{name}'; did you mean {' or '.join(close)}?"
    return f"There is no column '{name}'; the columns are {', '.join(there) or 'none yet'}."


def _checked_heads(frame: pd.DataFrame) -> list[Head]:
    if frame.index.nlevels != len(INDEX):
        raise UsageError(
            f"The frame's index has {frame.index.nlevels} level(s); "
            "it must have three: stack, layer, head."
        )
    if not frame.columns.is_unique:
        twice = frame.columns[frame.columns.duplicated()][0]
        raise UsageError(f"The frame has two columns named '{twice}'; give each its own name.")
    heads = [Head(stack, int(layer), int(index)) for stack, layer, index in frame.index]
    seen: set[Head] = set()
    for head in heads:
        _check_head(head, seen)
        seen.add(head)
    return heads


def _check_head(head: Head, seen: set[Head]) -> None:
    if head.stack not in STACKS or head.layer < 0 or head.index < 0:
        raise UsageError(
            f"{head} is not a head; the stack is one of {', '.join(STACKS)}, "
            "layer and head count from 0."
        )
    if head in seen:
        raise UsageError(f"{head} has two rows; give each head one.")


def _place(head: Head) -> tuple[int, int, int]:
    return STACKS.index(head.stack), head.layer, head.index


def _clean(name: str, values: pd.Series) -> Any:
    """Numbers as float64 with NaN where missing, words as text with NA where missing."""
    Column(name)  # refuses a name that no column may have
    if pd.api.types.is_numeric_dtype(values.dtype) or values.isna().all():
        return values.to_numpy(dtype="float64", na_value=np.nan)
    if not all(isinstance(value, str) for value in values.dropna()):
        raise UsageError(
            f"Column '{name}' holds neither numbers nor words alone; a column is one or the other."
        )
    return values.astype("string").array
