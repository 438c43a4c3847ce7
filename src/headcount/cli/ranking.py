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


def print_ranking(table: HeadTable, name: str) -> None:
    """The first and the last heads by one score, and where the first tenth of them is."""
    console, column = output(), table.column(name)
    console.print(f"{column.title}. {column.meaning}")
    console.print(_drawn(table, name))
    for line in _lines(table, name):
        console.print(line, style="dim")


def _drawn(table: HeadTable, name: str) -> Table:
    from rich.table import Table

    order, drawn = table.rank(name), Table(box=None)
    for heading, side in (("", "right"), ("head", "left"), (name, "right"), ("95%", "left")):
        drawn.add_column(heading, justify=side)  # type: ignore[arg-type]
    ends = order if len(order) <= 2 * ENDS else [*order[:ENDS], None, *order[-ENDS:]]
    for head in ends:
        drawn.add_row(*(["..."] if head is None else _row(table, name, head, order)))
    return drawn


def _row(table: HeadTable, name: str, head: Head, order: Sequence[Head]) -> list[str]:
    values, column = table.head(head), table.column(name)
    low, high = (values.get(f"{name}_{end}") for end in ("low", "high"))
    between = "" if low is None else f"[{column.show(low)}, {column.show(high)}]"
    return [str(order.index(head) + 1), str(head), column.show(values[name]), between]


def _lines(table: HeadTable, name: str) -> Iterator[str]:
    """What the ranking says about stacks."""
    order = table.rank(name)
    if len(table.stacks) > 1 and len(order) >= 2 * ENDS:
        top = order[: max(1, len(order) // 10)]
        counts = ", ".join(f"{s} {sum(h.stack == s for h in top)}" for s in table.stacks)
        yield f"The first tenth, {len(top)} heads: {counts}."
    if name in table.notes:
        yield f"{table.column(name).title}: {table.notes[name]}."


def print_agreement(frame: pd.DataFrame) -> None:
    """Spearman's correlation of every pair of scores over all heads."""
    rows: Any = frame[(frame["kind"] == "spearman") & (frame["stack"] == "all")]
    for row in rows.itertuples():
        told = row.note or f"{row.value:.2f} [{row.low:.2f}, {row.high:.2f}]"
        output().print(f"Rank agreement of {row.first} and {row.second}: {told}")
