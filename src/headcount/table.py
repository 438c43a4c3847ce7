"""The head table: one row per head, and columns that describe themselves."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from headcount.columns import Column
from headcount.errors import UsageError
from headcount.exact_json import to_strict
from headcount.heads import STACKS, Head, check_heads, parse_head
from headcount.table_frame import INDEX, head_index, in_order, rows_of, unknown_column
from headcount.table_join import join

if TYPE_CHECKING:
    from headcount.table_text import TableText

__all__ = ["INDEX", "SCHEMA", "HeadTable"]

#: Where a note turns to another stack: "dec: ...; cross: ...".
_BY_STACK = re.compile(rf"; (?=(?:{'|'.join(STACKS)}): )")

#: The newest table and run that this version reads, and the one that it writes.
SCHEMA = 1


class HeadTable:
    """What is known about every head: values, their intervals, and where they come from.

    A value that was not measured is NaN, and `notes` says why; it is never 0.

    >>> table = HeadTable.of([Head("enc", 0, 0), Head("enc", 0, 1)], {"confidence": [0.2, 0.9]},
    ...                      columns=[Column("confidence", more="sharper", range=(0, 1))])
    >>> table
    HeadTable(2 heads: enc 2; 1 column: confidence)
    >>> table.rank("confidence")[0]
    Head(stack='enc', layer=0, index=1)
    """

    def __init__(
        self,
        frame: pd.DataFrame,
        columns: Mapping[str, Column] | Iterable[Column] = (),
        *,
        low: pd.DataFrame | None = None,
        high: pd.DataFrame | None = None,
        notes: Mapping[str, str] | None = None,
        provenance: Mapping[str, Any] | None = None,
        origins: Mapping[str, Mapping[str, Any]] | None = None,
        details: Mapping[str, pd.DataFrame] | None = None,
    ) -> None:
        """Take a frame whose index is (stack, layer, head); rows are put in the order of heads."""
        #: Heads by statistics: float64 for numbers, text for verdicts.
        self.frame: pd.DataFrame = in_order(frame)
        #: Name to description, in the frame's order.
        self.columns: dict[str, Column] = self._describe(columns)
        #: Bounds of the columns that have intervals; without those that have none.
        self.low: pd.DataFrame = self._bounds(low, "low")
        self.high: pd.DataFrame = self._bounds(high, "high")
        #: Column to the reason why it is NA here, wholly or in part.
        self.notes: dict[str, str] = dict(notes or {})
        #: Model, data, versions, command, seed: the words are in `headcount.provenance`.
        self.provenance: dict[str, Any] = dict(provenance or {})
        #: Column to what produced it (call, convention, data), where it differs by column.
        self.origins: dict[str, dict[str, Any]] = {
            name: dict(origin) for name, origin in (origins or {}).items()
        }
        self._check_known(self.notes, "notes")
        self._check_known(self.origins, "origins")
        #: Finer tables by name, such as the histogram of offsets; saved beside this one.
        self.details: dict[str, pd.DataFrame] = dict(details or {})

    @classmethod
    def of(
        cls,
        heads: Sequence[Head],
        values: Mapping[str, Any],
        columns: Mapping[str, Column] | Iterable[Column] = (),
        *,
        low: Mapping[str, Any] | None = None,
        high: Mapping[str, Any] | None = None,
        **about: Any,
    ) -> HeadTable:
        """A table of plain sequences, each with one value for every head in the order given."""
        index = head_index(heads)
        frame, lower, upper = (
            pd.DataFrame(dict(part or {}), index=index) for part in (values, low, high)
        )
        return cls(frame, columns, low=lower, high=upper, **about)

    @property
    def heads(self) -> list[Head]:
        """Every head, in order."""
        return [Head(stack, int(layer), int(index)) for stack, layer, index in self.frame.index]

    @property
    def names(self) -> list[str]:
        """The names of the columns, in order."""
        return [str(name) for name in self.frame.columns]

    @property
    def stacks(self) -> list[str]:
        """The stacks that have heads here, in the order enc, dec, cross."""
        there = {head.stack for head in self.heads}
        return [stack for stack in STACKS if stack in there]

    def __len__(self) -> int:
        return len(self.frame)

    def __repr__(self) -> str:
        sizes = [f"{stack} {len(self.stack(stack))}" for stack in self.stacks]
        names = self.names
        shown = ", ".join([*names[:4], *(["..."] if len(names) > 4 else [])])
        return (
            f"HeadTable({_count(len(self), 'head')}: {', '.join(sizes) or 'none'}; "
            f"{_count(len(names), 'column')}: {shown or 'none'})"
        )

    def column(self, name: str) -> Column:
        """The description of a column, or an error that names the closest ones."""
        if name not in self.frame:
            raise UsageError(unknown_column(name, self.names))
        # The frame is the user's to extend, so a column may be younger than the descriptions.
        return self.columns.get(name) or Column(name)

    def numbers(self, column: str) -> np.ndarray:
        """A column's values as numbers, ``[head]``; a column of words is refused."""
        self.column(column)
        values = self.frame[column]
        if not pd.api.types.is_numeric_dtype(values.dtype):
            raise UsageError(
                f"Column '{column}' holds words, so it cannot rank heads; choose one with numbers."
            )
        return values.to_numpy(dtype="float64", na_value=np.nan)

    def rank(self, column: str) -> list[Head]:
        """Heads from the most to the least important by one column.

        Higher is more important unless the column says otherwise; ties keep the table's order
        (stack, layer, head). A head without a value has no rank, so it is left out.
        """
        values = self.numbers(column)
        sign = 1 if self.column(column).direction == "lower" else -1
        order = np.argsort(sign * values, kind="stable")  # NaN comes last
        heads = self.heads
        return [heads[row] for row in order if not math.isnan(values[row])]

    def top(self, column: str, n: int = 10) -> pd.Series:
        """The n most important heads by one column, with their values."""
        if n < 1:
            raise UsageError(f"top() was asked for {n} heads; ask for 1 or more.")
        rows = {head: row for row, head in enumerate(self.heads)}
        best = [rows[head] for head in self.rank(column)[:n]]
        return self.frame[column].iloc[best]

    def head(self, name: str | Head) -> dict[str, Any]:
        """One head's row: its name, its values and its intervals; None where NA."""
        return next(self.select([name]).rows())

    def stack(self, name: str) -> HeadTable:
        """The heads of one stack."""
        if name not in self.stacks:
            has = ", ".join(self.stacks) or "none"
            raise UsageError(f"There is no stack '{name}' in this table; it has {has}.")
        return self.select([head for head in self.heads if head.stack == name])

    def select(self, heads: Iterable[str | Head]) -> HeadTable:
        """Some of the heads, with everything that is known about them."""
        wanted = {parse_head(head) for head in heads}
        check_heads(wanted, self.heads)
        keep = [head in wanted for head in self.heads]
        return self._like(*(part.loc[keep] for part in self.parts()))

    def without(self, columns: Iterable[str]) -> HeadTable:
        """The same heads with fewer columns."""
        gone = set(columns)
        self._check_known(gone, "columns to leave out")
        return self._like(*(part[[n for n in part if n not in gone]] for part in self.parts()))

    def join(self, other: HeadTable, *, replace: bool = False) -> HeadTable:
        """The same heads with the columns of both tables.

        Tables of different heads are refused, and so is a column that both have with different
        values, unless the other table's shall replace it.
        """
        return join(self, other, replace=replace)

    def parts(self) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
        """Values, lower bounds and upper bounds."""
        return self.frame, self.low, self.high

    def wide(self) -> pd.DataFrame:
        """Values, then intervals as ``<column>_low`` and ``<column>_high``, in one frame."""
        bounds = [self.low.add_suffix("_low"), self.high.add_suffix("_high")]
        return pd.concat([self.frame, *bounds], axis=1)

    def rows(self) -> Iterator[dict[str, Any]]:
        """Each head as a plain dict; NA is None."""
        wide = self.wide()
        for head, values in zip(self.heads, wide.itertuples(index=False, name=None), strict=True):
            measured = dict(zip(map(str, wide), map(_known, values), strict=True))
            yield {"name": str(head), **dict(zip(INDEX, head, strict=True)), **measured}

    def to_dict(self) -> dict[str, Any]:
        """Everything, ready for strict JSON: NA is None."""
        return {
            "schema": SCHEMA,
            "provenance": to_strict(self.provenance),
            "columns": {name: self._about(name) for name in self.names},
            "heads": to_strict(list(self.rows())),
        }

    def save(self, path: str | Path, *, replace: bool = False) -> None:
        """Write the table into a run directory, which is made where there is none."""
        from headcount.run import Run  # a run holds tables, so it cannot be imported above

        with Run.open(path) as run:
            run.write_table(self, replace=replace)

    @classmethod
    def load(cls, path: str | Path) -> HeadTable:
        """Read the table of a run directory, or a heads.parquet on its own."""
        from headcount.parquet import read_table
        from headcount.run import Run

        if Path(path).suffix == ".parquet":
            return read_table(Path(path))
        return Run.open(path, create=False).read_table()

    def draw(
        self,
        columns: Sequence[str] | None = None,
        *,
        heat: bool = True,
        intervals: bool = False,
        papers: bool = True,
    ) -> TableText:
        """The table for a terminal, with a choice of columns; rich prints it."""
        from headcount.table_text import TableText

        return TableText(self, columns, heat=heat, intervals=intervals, papers=papers)

    def __rich__(self) -> TableText:
        return self.draw()

    def _repr_html_(self) -> str:
        from headcount.table_html import table_html

        return table_html(self)

    def _about(self, name: str) -> dict[str, Any]:
        """A column's description with its note and its origin."""
        extra = {"note": self.notes.get(name), "origin": to_strict(self.origins.get(name))}
        told = {key: value for key, value in extra.items() if value}
        return {**self.column(name).to_dict(), **told}

    def _like(self, frame: pd.DataFrame, low: pd.DataFrame, high: pd.DataFrame) -> HeadTable:
        """A table of these parts, with what this table says about their columns."""
        return type(self)(
            frame,
            [self.column(str(name)) for name in frame],
            low=low,
            high=high,
            notes=_notes_on(frame, self.notes),
            provenance=self.provenance,
            origins={name: origin for name, origin in self.origins.items() if name in frame},
            details={name: rows_of(detail, frame) for name, detail in self.details.items()},
        )

    def _describe(self, columns: Mapping[str, Column] | Iterable[Column]) -> dict[str, Column]:
        """A description for every column: the one given, or a bare one."""
        given = columns.values() if isinstance(columns, Mapping) else columns
        named = {column.name: column for column in given}
        self._check_known(named, "descriptions")
        return {name: named.get(name) or Column(name) for name in self.names}

    def _bounds(self, bounds: pd.DataFrame | None, which: str) -> pd.DataFrame:
        """Interval bounds in the frame's order; an empty frame where there are none."""
        if bounds is None:
            return pd.DataFrame(index=self.frame.index)
        ordered = in_order(bounds)
        self._check_known(map(str, ordered), f"{which} bounds")
        if not ordered.index.equals(self.frame.index):
            raise UsageError(
                f"The {which} bounds are for {len(ordered)} heads and the values for {len(self)}, "
                "and not for the same ones; give both for the same heads."
            )
        for name in ordered:
            if f"{name}_{which}" in self.frame:
                raise UsageError(
                    f"Column '{name}_{which}' has the name of a bound of '{name}'; rename it."
                )
        return ordered

    def _check_known(self, names: Iterable[str], what: str) -> None:
        """Everything said about columns must be about columns that are there."""
        for name in names:
            if name not in self.frame:
                raise UsageError(
                    f"{unknown_column(name, self.names)} It was named among the {what}."
                )


def _notes_on(frame: pd.DataFrame, notes: Mapping[str, str]) -> dict[str, str]:
    """The notes on a frame's columns, without what they say of stacks that it does not have."""
    there = {*frame.index.get_level_values("stack")}
    kept = {
        name: "; ".join(
            part
            for part in _BY_STACK.split(note)
            if part.partition(": ")[0] not in STACKS or part.partition(": ")[0] in there
        )
        for name, note in notes.items()
        if name in frame
    }
    return {name: note for name, note in kept.items() if note}


def _known(value: Any) -> Any:
    """A value, or None for NaN and NA."""
    return None if pd.isna(value) else value


def _count(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"
