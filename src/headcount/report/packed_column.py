"""A column's numbers in few letters: whole multiples of a unit, bounds as distances from them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from headcount.report.safe_json import figures

__all__ = ["packed", "unpacked"]

#: A column is told to a ten-thousandth of its largest value's power of ten.
_FINE = 4


def packed(
    values: Iterable[float], low: Iterable[float] | None = None, high: Iterable[float] | None = None
) -> dict[str, Any]:
    """``values`` with ``lo`` and ``hi``, in units of ``u``; as they are where values span far.

    >>> packed([0.25, float("nan")], [0.2, float("nan")], [0.31, float("nan")])
    {'u': 0.0001, 'values': [2500, None], 'lo': [500, None], 'hi': [600, None]}
    """
    exact = np.asarray(list(values), dtype=float)
    bounds = [None if one is None else np.asarray(list(one), dtype=float) for one in (low, high)]
    unit = _unit(exact)
    if unit is None:
        told: dict[str, Any] = {"values": figures(exact)}
        rest: list[Any] = [None if one is None else figures(one, 3) for one in bounds]
    else:
        told = {"u": unit, "values": _whole(exact / unit)}
        rest = [
            None if one is None else _whole(sign * (one / unit - np.rint(exact / unit)))
            for one, sign in zip(bounds, (-1, 1), strict=True)  # below 0: past the value
        ]
    if rest[0] is not None and rest[1] is not None:
        told |= {"lo": rest[0], "hi": rest[1]}
    return told


def unpacked(column: dict[str, Any]) -> dict[str, list[float | None]]:
    """What a browser makes of it."""
    unit = column.get("u")
    if unit is None:
        return {key: column[key] for key in ("values", "lo", "hi") if key in column}
    values = column["values"]
    found = {"values": [None if v is None else v * unit for v in values]}
    for key, sign in (("lo", -1), ("hi", 1)):
        if key in column:
            pairs = zip(values, column[key], strict=True)
            found[key] = [None if d is None else (v + sign * d) * unit for v, d in pairs]
    return found


def _unit(values: np.ndarray) -> float | None:
    """A power of ten; None where the smallest values would be lost in it."""
    sizes = np.abs(values[np.isfinite(values) & (values != 0)])
    if not len(sizes):
        return 10.0**-_FINE
    unit = float(f"1e{math.ceil(math.log10(sizes.max())) - _FINE}")
    return unit if np.median(sizes) > 100 * unit else None


def _whole(values: np.ndarray) -> list[int | None]:
    return [round(value) if math.isfinite(value) else None for value in values.tolist()]
