"""Verdicts as a frame, one row each, and back: what `roles.parquet` holds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields
from typing import Any

import pandas as pd

from headcount.heads import Head
from headcount.roles.role import Verdict

__all__ = ["COLUMNS", "verdict_frame", "verdicts_of"]

#: The frame's columns: the head in three, then the verdict's own fields.
COLUMNS = ("stack", "layer", "head", *(field.name for field in fields(Verdict)[1:]))


def verdict_frame(verdicts: Iterable[Verdict]) -> pd.DataFrame:
    """One row a verdict, in the order given; the columns are there also when there is none.

    >>> verdict_frame([Verdict(Head("enc", 0, 1), "rare", "rarest token", 0.5)]).head(1).iloc[0, :6]
    stack              enc
    layer                0
    head                 1
    role              rare
    label     rarest token
    value              0.5
    Name: 0, dtype: object
    """
    rows = [(*verdict.head, *_figures(verdict)) for verdict in verdicts]
    frame = pd.DataFrame(rows, columns=list(COLUMNS))
    if not rows:
        words = {"stack", "role", "label", "evidence"}
        return frame.astype({name: "str" if name in words else "float64" for name in COLUMNS})
    return frame


def verdicts_of(frame: pd.DataFrame) -> list[Verdict]:
    """The verdicts of a frame; columns that a later version added are passed over."""
    known = frame[list(COLUMNS)].itertuples(index=False, name=None)
    return [_verdict(row) for row in known]


def _figures(verdict: Verdict) -> tuple[Any, ...]:
    return tuple(getattr(verdict, field.name) for field in fields(Verdict)[1:])


def _verdict(row: Sequence[Any]) -> Verdict:
    stack, layer, index, *figures = row
    return Verdict(Head(str(stack), int(layer), int(index)), *figures)
