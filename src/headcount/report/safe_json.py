"""JSON that can lie inside a page: ASCII alone, and no sign that a browser could read as markup."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from typing import Any

from headcount.exact_json import to_strict

__all__ = ["figure", "figures", "safe_json"]

_ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"}


def safe_json(value: Any) -> str:
    """A value as JSON without ``<``, ``>`` and ``&``.

    >>> safe_json({"token": "</script>"})
    '{"token":"\\\\u003c/script\\\\u003e"}'
    """
    text = json.dumps(to_strict(value), separators=(",", ":"), allow_nan=False)
    for sign, escape in _ESCAPES.items():
        text = text.replace(sign, escape)
    return text


def figure(value: Any, digits: int = 4) -> float | int | None:
    """A number with so many digits that count; None where it was not measured.

    >>> figure(0.123456), figure(float("nan")), figure(3.0)
    (0.1235, None, 3)
    """
    number = float(value)
    if not math.isfinite(number):
        return None
    short = float(f"{number:.{digits}g}")
    return int(short) if short.is_integer() and abs(short) < 1e15 else short


def figures(values: Iterable[Any], digits: int = 4) -> list[float | int | None]:
    """The same for many."""
    return [figure(value, digits) for value in values]
