"""Columns of the head table, which say how to read themselves, and the shades of their cells."""

from __future__ import annotations

import dataclasses
import math
import numbers
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from headcount.errors import UsageError

#: How a value that was not measured is shown; it is never shown as 0.
NA = "–"

Direction = Literal["higher", "lower"]

_NAME = re.compile(r"[a-z][a-z0-9_]*")
_TAKEN = ("stack", "layer", "head", "name")


@dataclass(frozen=True)
class Column:
    """What one statistic of a head means, in which unit and range, and which way is more.

    >>> entropy = Column("entropy", meaning="Mean entropy of a query's attention.", unit="nats",
    ...                  paper="Clark et al. 2019, section 3.3", range=(0, None), more="broader")
    >>> entropy.title, entropy.show(1.234567), entropy.show(None)
    ('Entropy', '1.23', '–')
    """

    #: The word for it everywhere: the frame, Parquet, the command line.
    name: str
    #: What people read above the column; made from the name when left out.
    title: str = ""
    #: One sentence: what was measured.
    meaning: str = ""
    #: Paper and section or equation, where there is one.
    paper: str = ""
    #: "nats", "tokens", ...; empty for a share or a plain number.
    unit: str = ""
    #: The smallest and the largest possible value; None where there is no bound.
    range: tuple[float | None, float | None] = (None, None)
    #: Which values rank first: "higher", "lower", or None where the column does not rank by itself.
    direction: Direction | None = None
    #: What a larger value means, in a word: "sharper", "broader".
    more: str = "more"
    #: The question this column belongs to, for menus: "Where it looks".
    group: str = ""
    #: A Python format specification for one value.
    format: str = ".2f"
    #: Whether the sign matters, so that colours part at 0.
    diverging: bool = False

    def __post_init__(self) -> None:
        """Check what was given, and make a title from the name."""
        if not _NAME.fullmatch(self.name):  # it is also a flag and a Parquet column
            raise UsageError(
                f"'{self.name}' cannot name a column; use small letters, digits and underscores, "
                "starting with a letter, e.g. best_offset."
            )
        if self.name in _TAKEN:
            raise UsageError(
                f"'{self.name}' cannot name a column, because it names a head itself "
                f"({', '.join(_TAKEN)}); choose another name."
            )
        if self.direction not in ("higher", "lower", None):
            raise UsageError(
                f"Column '{self.name}' has direction '{self.direction}'; "
                "it is 'higher', 'lower', or None where neither ranks first."
            )
        low, high = self.range or (None, None)
        if low is not None and high is not None and low > high:
            raise UsageError(
                f"Column '{self.name}' has range ({low}, {high}); the lower bound comes first."
            )
        try:
            format(0.0, self.format)
        except ValueError as error:
            raise UsageError(
                f"Column '{self.name}' has format '{self.format}', which cannot show a number; "
                "use a format specification such as '.2f' or '+.0f'."
            ) from error
        object.__setattr__(self, "range", (low, high))
        object.__setattr__(self, "title", self.title or self.name.replace("_", " ").capitalize())

    def show(self, value: Any) -> str:
        """One value as people read it; a value that was not measured is a dash.

        >>> Column("best_offset", format="+.0f").show(-1.0)
        '-1'
        """
        if isinstance(value, str):
            return value
        measured = isinstance(value, numbers.Real) and not math.isnan(value)
        return format(value, self.format) if measured else NA

    def to_dict(self) -> dict[str, Any]:
        """The description as plain JSON.

        >>> Column.from_dict(Column("self").to_dict()) == Column("self")
        True
        """
        return {**dataclasses.asdict(self), "range": list(self.range)}

    @classmethod
    def from_dict(cls, description: Mapping[str, Any]) -> Column:
        """Read a description; keys that a later version added are passed over."""
        known = {field.name for field in dataclasses.fields(cls)}
        return cls(**{key: value for key, value in description.items() if key in known})


# --- How strongly a cell is shaded --------------------------------------------------------------

#: The strongest step; 0 is no shade at all.
STEPS = 9


def is_p(name: str) -> bool:
    """Whether a column holds p values: `p`, `ablation_p`, `ablation_p_adjusted`, not `to_place`."""
    return re.search(r"(?:^|_)p(?:_|$)", name) is not None


def heat_steps(column: Column, values: np.ndarray) -> list[int]:
    """A step from 0 to 9 for each value; below 0 on a column whose sign matters, 0 for NA and p.

    >>> heat_steps(Column("self", range=(0, 1)), np.array([0.0, 0.5, 1.0, np.nan]))
    [0, 4, 9, 0]
    """
    finite = values[np.isfinite(values)]
    if is_p(column.name):
        return [0] * len(values)  # the darkest would be the least significant
    seen = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 0.0)
    low, high = (
        value if bound is None else bound for value, bound in zip(seen, column.range, strict=True)
    )
    return [_step(value, low, high, column.diverging) for value in values.tolist()]


def _step(value: float, low: float, high: float, diverging: bool) -> int:
    if math.isnan(value):
        return 0
    if diverging:
        low, high = 0.0, max(abs(low), abs(high))
    if high <= low:
        return 0
    if math.isinf(high - low):  # numbers near the largest float: halves have a range
        value, low, high = value / 2, low / 2, high / 2
    share = (abs(value) if diverging else value) - low
    step = round(STEPS * min(max(share / (high - low), 0.0), 1.0))
    return -step if diverging and value < 0 else step
