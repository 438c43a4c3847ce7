"""Scores of heads at a glance: who comes first and last, stack by stack, and who agrees."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from headcount.cli.output import output

if TYPE_CHECKING:
    import pandas as pd
    from rich.table import Table

    from headcount.heads import Head
    from headcount.table import HeadTable

__all__ = ["print_agreement", "print_ranking"]

#: So many heads are shown at either end.
ENDS = 5
#: Above it, chance could have done it.
LEVEL = 0.05


def print_ranking(table: HeadTable, name: str) -> None:
    """The first and the last heads by one score, and where the first tenth of them is."""
    console, column = output(), table.column(name)
    console.print(f"{column.title}. {column.meaning}")
    console.print(_drawn(table, name))
    for line in _lines(table, name):
        console.print(line, style="dim")


def _drawn(table: HeadTable, name: str) -> Table:
    from rich.table import Table

    order, drawn = _order(table, name), Table(box=None)
    for heading, side in (("", "right"), ("head", "left"), (name, "right"), ("95%", "left")):
        drawn.add_column(heading, justify=side)  # type: ignore[arg-type]
    for place, head in enumerate(order):
        if place < ENDS or place >= len(order) - ENDS:
            drawn.add_row(str(place + 1), *_row(table, name, head, len(order) < len(table)))
        elif place == ENDS:
            drawn.add_row("...")
    return drawn


def _order(table: HeadTable, name: str) -> list[Head]:
    """Heads from the first to the last; one for each layer where a layer has one value."""
    order = table.rank(name)
    layers = table.frame[name].groupby(level=["stack", "layer"]).nunique()
    if layers.gt(1).any() or len(layers) == len(order):
        return order
    return list({(head.stack, head.layer): head for head in order}.values())


def _row(table: HeadTable, name: str, head: Head, layer: bool) -> list[str]:
    values, column = table.head(head), table.column(name)
    low, high = (values.get(f"{name}_{end}") for end in ("low", "high"))
    between = "" if low is None else f"[{column.show(low)}, {column.show(high)}]"
    called = f"{head.stack}.{head.layer}" if layer else str(head)
    return [called, column.show(values[name]), between]


def _lines(table: HeadTable, name: str) -> Iterator[str]:
    """What the ranking says about stacks, and about chance."""
    order = table.rank(name)
    if len(table.stacks) > 1 and len(order) >= 2 * ENDS:
        top = order[: max(1, len(order) // 10)]
        yield f"The first tenth, {len(top)} heads: {_by_stack(top, table)}."
    if f"{name}_p_adjusted" in table.names:
        yield from _significant(table, name)
    if name in table.notes:
        yield f"{table.column(name).title}: {table.notes[name]}."


def _significant(table: HeadTable, name: str) -> Iterator[str]:
    """How many heads matter, and how many stand in the way, beyond chance."""
    p, cost = (table.numbers(column) for column in (f"{name}_p_adjusted", name))
    sure = [head for head, chance in zip(table.heads, p, strict=True) if chance < LEVEL]
    worse = {head for head, lost in zip(table.heads, cost, strict=True) if lost > 0}
    for deed, heads in (
        ("cost something", [head for head in sure if head in worse]),
        ("are better gone", [head for head in sure if head not in worse]),
    ):
        where = f": {_by_stack(heads, table)}" if heads and len(table.stacks) > 1 else ""
        yield f"{len(heads)} of {len(table)} {deed} (p < {LEVEL} after Holm){where}."


def _by_stack(heads: Sequence[Head], table: HeadTable) -> str:
    return ", ".join(f"{stack} {sum(h.stack == stack for h in heads)}" for stack in table.stacks)


def print_agreement(frame: pd.DataFrame) -> None:
    """Spearman's correlation of every pair of scores over all heads."""
    rows: Any = frame[(frame["kind"] == "spearman") & (frame["stack"] == "all")]
    for row in rows.itertuples():
        told = row.note or f"{row.value:.2f} [{row.low:.2f}, {row.high:.2f}]"
        output().print(f"Rank agreement of {row.first} and {row.second}: {told}")
