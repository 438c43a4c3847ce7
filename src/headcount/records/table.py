"""The head table: one row per head, and columns that describe themselves."""

from __future__ import annotations

import difflib
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from headcount.errors import UsageError
from headcount.records.columns import Column
from headcount.records.files import to_strict
from headcount.records.heads import STACKS, Head, check_heads, parse_head
from headcount.records.rendering import Brief, TableText, plain_figure

# --- Frames of the head table -------------------------------------------------------------------

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
    if frame.index.nlevels != len(INDEX):
        raise UsageError(
            f"The frame's index has {frame.index.nlevels} level(s); "
            "it must have three: stack, layer, head."
        )
    if not frame.columns.is_unique:
        twice = frame.columns[frame.columns.duplicated()][0]
        raise UsageError(f"The frame has two columns named '{twice}'; give each its own name.")
    if _is_clean(frame):
        return frame.copy()
    heads = [Head(stack, int(layer), int(index)) for stack, layer, index in frame.index]
    for head, rows in Counter(heads).items():
        if head.stack not in STACKS or head.layer < 0 or head.index < 0:
            raise UsageError(
                f"{head} is not a head; the stack is one of {', '.join(STACKS)}, "
                "layer and head count from 0."
            )
        if rows > 1:
            raise UsageError(f"{head} has two rows; give each head one.")
    order = sorted(range(len(heads)), key=lambda row: (STACKS.index(heads[row].stack), heads[row]))
    data = {str(name): _clean(str(name), frame[name].iloc[order]) for name in frame.columns}
    return pd.DataFrame(data, index=head_index(heads[row] for row in order), columns=list(data))


def _is_clean(frame: pd.DataFrame) -> bool:
    """Whether a frame is of numbers with heads in order and good names, as tables make them."""
    index = frame.index
    if not isinstance(index, pd.MultiIndex) or index.names != [*INDEX] or not frame.size:
        return False
    if [*index.levels[0]] != [*STACKS] or any(kind != np.float64 for kind in frame.dtypes):
        return False
    layers, heads = index.levels[1:]
    for level, codes in zip(index.levels[1:], index.codes[1:], strict=True):
        used = len(np.unique(codes)) == len(level)  # as `head_index` makes them
        if level.dtype != np.int64 or not level.is_monotonic_increasing or not used or level[0] < 0:
            return False
    for name in frame.columns:
        if not isinstance(name, str):
            return False
        Column(name)  # refuses a name that no column may have
    stack, layer, head = (np.asarray(codes, dtype=np.int64) for codes in index.codes)
    places = (stack * len(layers) + layer) * len(heads) + head
    return bool((stack >= 0).all() and (np.diff(places) > 0).all())


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


# --- Two tables of the same heads become one, wider ---------------------------------------------


def join(one: HeadTable, other: HeadTable, *, replace: bool = False) -> HeadTable:
    """The columns of both; where both have one, it must be equal, or `other`'s shall replace it."""
    _check_same_subject(one, other)
    shared = [name for name in other.names if name in one.names]
    if replace:
        joined = _side_by_side(one.without(shared), other)
        joined.details = {**one.details, **other.details}
    else:
        for name in shared:
            _check_same_values(one, other, name)
        joined = _side_by_side(one, other.without(shared))
        # Intervals, notes and origins that only the other table knows.
        for part, lent in zip(joined.parts()[1:], other.parts()[1:], strict=True):
            for column in [column for column in lent if column not in part]:
                part[column] = lent[column]
        joined.notes = {**other.notes, **joined.notes}
        joined.origins = {**other.origins, **joined.origins}
    order = [*one.names, *(name for name in other.names if name not in shared)]
    joined.frame, joined.low, joined.high = (
        part[[name for name in order if name in part]] for part in joined.parts()
    )
    return joined


def _check_same_subject(one: HeadTable, other: HeadTable) -> None:
    """The same heads, and the same weights where both say so: two models may share their heads."""
    mine, theirs = set(one.heads), set(other.heads)
    for head in [*one.heads, *other.heads]:
        if head not in mine or head not in theirs:
            which = "first" if head in mine else "second"
            raise UsageError(
                f"The tables have different heads ({len(mine)} and {len(theirs)}): {head} is only "
                f"in the {which}. Join tables of one model."
            )
    was, now = one.provenance.get("weights"), other.provenance.get("weights")
    if was and now and was != now:
        raise UsageError(
            f"The tables are of different weights ({was} and {now}). Join tables of one model."
        )


def _check_same_values(one: HeadTable, other: HeadTable, name: str) -> None:
    """The values must agree exactly, and so must the intervals where both have them."""
    for mine, theirs, bound in zip(one.parts(), other.parts(), ("", "_low", "_high"), strict=True):
        if name not in mine or name not in theirs or mine[name].equals(theirs[name]):
            continue
        old, new = mine[name].astype(object), theirs[name].astype(object)
        same = (old.isna() & new.isna()) | (old.notna() & new.notna() & (old == new))
        row = int(np.argmin(same.to_numpy(dtype=bool)))
        raise UsageError(
            f"Both tables have '{name}{bound}', and at {one.heads[row]} it is "
            f"{mine[name].iloc[row]} in the first and {theirs[name].iloc[row]} in the second; "
            "pass replace=True to take the second."
        )


def _side_by_side(old: HeadTable, new: HeadTable) -> HeadTable:
    """Two tables without a column in common."""
    parts = [pd.concat(pair, axis=1) for pair in zip(old.parts(), new.parts(), strict=True)]
    # Where no old column is left, the new ones' provenance is that of the whole table.
    provenance = old.provenance if old.names else new.provenance or old.provenance
    news = {} if new.provenance == provenance else new.provenance
    origins = {name: {**news, **new.origins.get(name, {})} for name in new.names}
    return type(old)(
        parts[0],
        {**old.columns, **new.columns},
        low=parts[1],
        high=parts[2],
        notes={**old.notes, **new.notes},
        provenance=provenance,
        origins={**old.origins, **{name: origin for name, origin in origins.items() if origin}},
        details={**new.details, **old.details},
    )


# --- The head table -----------------------------------------------------------------------------


class HeadRow(Brief, dict[str, Any]):
    """One head's row, which prints what was measured.

    >>> HeadRow(name="enc.0.1", stack="enc", layer=0, head=1, entropy=1.25, self=None)
    enc.0.1: entropy 1.250
    """

    def in_brief(self) -> tuple[str, pd.DataFrame]:
        """The values that are there, in words and as rows."""
        known = [(n, v) for n, v in self.items() if v is not None and n not in (*INDEX, "name")]
        shown = {name: plain_figure(value) for name, value in known}
        words = ", ".join(f"{n} {v}" for n, v in shown.items() if not n.endswith(("_low", "_high")))
        return f"{self.get('name')}: {words}", pd.DataFrame({"value": shown})


#: Where a note turns to another stack: "dec: ...; cross: ...".
_BY_STACK = re.compile(rf"; (?=(?:{'|'.join(STACKS)}): )")

#: The newest table and run that this version reads, and the one that it writes.
SCHEMA = 1


class HeadTable(Brief):
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
        #: Model, data, versions, command, seed: the words are in `headcount.records.provenance`.
        self.provenance: dict[str, Any] = dict(provenance or {})
        #: Column to what produced it (call, convention, data), where it differs by column.
        self.origins: dict[str, dict[str, Any]] = {
            name: dict(origin) for name, origin in (origins or {}).items()
        }
        self._check_known(self.notes, "notes")
        self._check_known(self.origins, "origins")
        #: Finer tables by name, such as the histogram of offsets; saved next to this one.
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
        return list(dict.fromkeys(head.stack for head in self.heads))

    def __len__(self) -> int:
        return len(self.frame)

    def __repr__(self) -> str:
        sizes = [f"{stack} {len(self.stack(stack))}" for stack in self.stacks]
        names = self.names[:4] + ["..."] * (len(self.names) > 4)
        heads, columns = (
            f"{n} {what}" if n == 1 else f"{n} {what}s"
            for n, what in ((len(self), "head"), (len(self.names), "column"))
        )
        return (
            f"HeadTable({heads}: {', '.join(sizes) or 'none'}; "
            f"{columns}: {', '.join(names) or 'none'})"
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
        best = self.rank(column)[:n]
        return self.frame[column].loc[best]

    def head(self, name: str | Head) -> HeadRow:
        """One head's row: its name, its values and its intervals; None where NA."""
        return HeadRow(next(self.select([name]).rows()))

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
            measured = (None if pd.isna(value) else value for value in values)
            known = dict(zip([*INDEX, *map(str, wide)], [*head, *measured], strict=True))
            yield {"name": str(head), **known}

    def to_dict(self) -> dict[str, Any]:
        """Everything, ready for strict JSON: NA is None."""
        columns = {name: self.column(name).to_dict() for name in self.names}
        for name, about in columns.items():
            extra = {"note": self.notes.get(name), "origin": to_strict(self.origins.get(name))}
            about.update({key: value for key, value in extra.items() if value})
        return {
            "schema": SCHEMA,
            "provenance": to_strict(self.provenance),
            "columns": columns,
            "heads": to_strict(list(self.rows())),
        }

    def save(self, path: str | Path, *, replace: bool = False) -> None:
        """Write the table into a run directory, which is made where there is none."""
        from headcount.records.run import Run  # a run holds tables, so it cannot be imported above

        with Run.open(path) as run:
            run.write_table(self, replace=replace)

    @classmethod
    def load(cls, path: str | Path) -> HeadTable:
        """Read the table of a run directory, or a heads.parquet on its own."""
        from headcount.records.parquet import read_table
        from headcount.records.run import Run

        if Path(path).suffix == ".parquet":
            return read_table(Path(path))
        return Run.open(path, create=False).read_table()

    def draw(
        self,
        columns: str | Sequence[str] | None = None,
        *,
        heat: bool = True,
        intervals: bool = False,
        papers: bool = True,
    ) -> TableText:
        """The table for a terminal, with one column or a choice of them; rich prints it."""
        columns = [columns] if isinstance(columns, str) else columns
        return TableText(self, columns, heat=heat, intervals=intervals, papers=papers)

    def __rich__(self) -> TableText:
        return self.draw()

    def in_brief(self) -> tuple[str, HeadTable]:
        """The caption in a notebook, and the table itself."""
        model = self.provenance.get("model")
        return f"{len(self)} heads" + (f" of {model}" if model else ""), self

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
        """What is given about columns must be about columns that are there."""
        for name in names:
            if name not in self.frame:
                raise UsageError(
                    f"{unknown_column(name, self.names)} It was named among the {what}."
                )


def _notes_on(frame: pd.DataFrame, notes: Mapping[str, str]) -> dict[str, str]:
    """The notes on a frame's columns, without what they say of stacks that it does not have."""
    gone = {*STACKS} - {*frame.index.get_level_values("stack")}
    kept = {}
    for name in [name for name in notes if name in frame]:
        parts = _BY_STACK.split(notes[name])
        kept[name] = "; ".join(part for part in parts if part.partition(": ")[0] not in gone)
    return {name: note for name, note in kept.items() if note}
