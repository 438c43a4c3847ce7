"""One head on one sentence: its map, drawn in a terminal or a notebook."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Group
from rich.table import Table
from rich.text import Text

from headcount.errors import InputError, UsageError
from headcount.heads import Head, check_heads, parse_head
from headcount.subject import Subject
from headcount.text import Batch, Pair, Side, encode, intake_of
from headcount.tokens import visible_token
from headcount.wiring import Needs, tap

__all__ = ["View", "show"]

#: Shades for a weight, from nothing to all.
_SHADES = " ·░▒▓█"
#: More columns than this do not fit a terminal; the strongest keys are then named alone.
_WIDEST = 40


@dataclass(frozen=True)
class View:
    """A head's weights `[query, key]` on one sentence, with the tokens of both sides."""

    head: Head
    queries: list[str]
    keys: list[str]
    weights: NDArray[np.float32]
    top: int = 3

    def strongest(self, query: int) -> list[tuple[str, float]]:
        """The keys a query looks at most, with their weights."""
        row = self.weights[query]
        order = np.argsort(-row, kind="stable")[: self.top]
        return [(self.keys[key], float(row[key])) for key in order]

    def to_dict(self) -> dict[str, Any]:
        """Everything, for machines."""
        return {
            "head": str(self.head),
            "queries": self.queries,
            "keys": self.keys,
            "weights": self.weights.astype(float).tolist(),
        }

    def __rich__(self) -> Group:
        title = Text.assemble(
            ("Head ", "dim"), (str(self.head), "bold"), ("  rows ask, columns answer", "dim")
        )
        return Group(title, self._table(), Text(f"{_SHADES[1:]}  from 0 to 1", style="dim"))

    def _table(self) -> Table:
        table = Table(box=None, padding=(0, 1, 0, 0), show_header=False)
        for query, token in enumerate(self.queries):
            cells = [Text(visible_token(token), style="bold", justify="right")]
            if len(self.keys) <= _WIDEST:
                cells.append(Text("".join(_shade(w) for w in self.weights[query])))
            cells.append(_named(self.strongest(query)))
            table.add_row(*cells)
        return table

    def _repr_html_(self) -> str:
        """A small heat map for notebooks; every token is escaped."""
        heads = "".join(f"<th>{escape(visible_token(key))}</th>" for key in self.keys)
        rows = "".join(
            f"<tr><th>{escape(visible_token(token))}</th>{_cells(self.weights[place])}</tr>"
            for place, token in enumerate(self.queries)
        )
        return (
            f"<table><caption>Head {self.head}: rows ask, columns answer</caption>"
            f"<tr><th></th>{heads}</tr>{rows}</table>"
        )


def show(
    subject: Subject,
    sentence: str,
    head: str | Head,
    *,
    target: str | None = None,
    chat: bool = False,
    top: int = 3,
) -> View:
    """One head's attention on one sentence.

    `target` is the translation (needed for decoder and cross heads of a translator), or the
    second text of a pair for an encoder.
    """
    wanted = parse_head(head)
    check_heads([wanted], subject.heads)
    if top < 1:
        raise UsageError(f"top is {top}; name 1 key or more.")
    batch = _batch(subject, sentence, target, wanted, chat)
    with tap(subject, Needs(maps=True), stacks={wanted.stack}) as watch:
        for sighting in watch(batch):
            if sighting.site.layer == wanted.layer and sighting.maps is not None:
                weights = sighting.maps[0, wanted.index].float().cpu().numpy()
                return View(wanted, _tokens(sighting.queries), _tokens(sighting.keys), weights, top)
    raise InputError(f"{subject.name} showed nothing of {wanted}.")


def _batch(subject: Subject, sentence: str, target: str | None, head: Head, chat: bool) -> Batch:
    text: Any = sentence if target is None else Pair(sentence, target)
    stacks = subject.anatomy.stacks
    if "cross" in stacks and target is None:
        if head.stack != "enc":
            raise UsageError(f"{head} reads a translation too; give it with --target (target=...).")
        stacks = ("enc",)
    encoded = encode(
        [text],
        subject.tokenizer,
        stacks=stacks,
        intake=intake_of(subject.model, subject.tokenizer),
        long="error",
        chat=chat,
    )
    return next(iter(encoded))


def _tokens(side: Side) -> list[str]:
    return side.tokens[0]


def _shade(weight: float) -> str:
    """A character for a weight, spread by its square root so that small ones show."""
    return _SHADES[min(len(_SHADES) - 1, int(np.sqrt(weight) * len(_SHADES)))]


def _named(strongest: list[tuple[str, float]]) -> Text:
    parts: list[Any] = []
    for token, weight in strongest:
        parts += [(visible_token(token), ""), (f" {weight:.2f}  ", "dim")]
    return Text.assemble(*parts)


def _cells(row: NDArray[np.float32]) -> str:
    return "".join(
        f'<td title="{weight:.3f}" style="background:rgba(18,65,155,{weight:.3f})">&nbsp;</td>'
        for weight in row
    )
