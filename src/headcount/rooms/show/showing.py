"""One head on one sentence: its map, drawn in a terminal or a notebook."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from headcount.errors import InputError, UsageError
from headcount.models import Subject, check_subject, refuse_nan
from headcount.records import (
    Head,
    check_heads,
    old_keywords,
    parse_head,
    token_texts,
    view_html,
    visible_token,
)
from headcount.rooms.exhibits import encode_one
from headcount.text import Batch, Pair, intake_of
from headcount.wiring import Needs, Sighting, tap

#: Shades for a weight, from nothing to all.
_SHADES = " ·░▒▓█"


@dataclass(frozen=True, repr=False, eq=False)
class View:
    """A head's weights `[query, key]` on one sentence, with the tokens of both sides.

    >>> view = View(Head("enc", 0, 1), ["a", "b"], ["a", "b"], np.array([[0, 1], [0.5, 0.5]]))
    >>> view
    View(enc.0.1: 2 queries x 2 keys)
    >>> view.strongest(0)
    [('b', 1.0), ('a', 0.0)]
    """

    head: Head
    queries: list[str]
    keys: list[str]
    weights: NDArray[np.float32]
    top: int = 3

    def __repr__(self) -> str:
        return f"View({self.head}: {len(self.queries)} queries x {len(self.keys)} keys)"

    def strongest(self, query: int) -> list[tuple[str, float]]:
        """The keys a query looks at most, with their weights; among equals the first."""
        return [(self.keys[key], weight) for key, weight in self._strongest(query)]

    def _strongest(self, query: int) -> list[tuple[int, float]]:
        row = self.weights[query]
        return [(int(key), float(row[key])) for key in np.argsort(-row, kind="stable")[: self.top]]

    def to_dict(self) -> dict[str, Any]:
        """Everything, for machines."""
        return {
            "head": str(self.head),
            "queries": self.queries,
            "keys": self.keys,
            "weights": self.weights.astype(float).tolist(),
        }

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """A line for each query: its token, its row in shades where it fits, its strongest keys."""
        yield Text.assemble(
            ("Head ", "dim"), (str(self.head), "bold"), ("  query rows, key columns", "dim")
        )
        yield from self._lines(options.max_width)
        yield Text(f"{_SHADES[1:]}  from 0 to 1", style="dim")

    def _lines(self, width: int) -> Iterator[Text]:
        labels, keys = (
            [visible_token(token) for token in token_texts(side)]
            for side in (self.queries, self.keys)
        )
        rows = [self._strongest(query) for query in range(len(labels))]
        named = [_named([(keys[key], weight) for key, weight in row]) for row in rows]
        margin = max(map(cell_len, labels))
        drawn = margin + len(self.keys) + max(line.cell_len for line in named) + 3 <= width
        for label, row, strongest in zip(labels, self.weights, named, strict=True):
            shades = f"{''.join(map(_shade, row))}  " if drawn else ""
            space = " " * (margin - cell_len(label))
            yield Text.assemble(f"{space}", (label, "bold"), f" {shades}", strongest)

    def _repr_html_(self) -> str:
        """A heat map and lines, for notebooks."""
        return view_html(str(self.head), self.queries, self.keys, self.weights)


@old_keywords()
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
    check_subject(subject, "show(subject, sentence, head)")
    wanted = parse_head(head)
    check_heads([wanted], subject.heads)
    if top < 1:
        raise UsageError(f"top is {top}; name 1 key or more.")
    if not sentence.strip() or (target is not None and not target.strip()):
        raise UsageError("The sentence is empty; give one with a word in it.")
    found: list[View] = []

    def receive(sighting: Sighting) -> None:
        if sighting.site.layer == wanted.layer and sighting.maps is not None:
            weights = sighting.maps[0, sighting.site.indices.index(wanted.index)].cpu().numpy()
            tokens = sighting.queries.tokens[0], sighting.keys.tokens[0]
            found.append(View(wanted, *tokens, weights, top))

    batch = _batch(subject, sentence, target, wanted, chat)
    with tap(subject, Needs(maps=True), stacks={wanted.stack}) as watch:
        watch(batch, receive=receive)
    (view,) = found
    if np.isnan(view.weights).any():
        refuse_nan(subject, str(wanted))
    return view


def _batch(subject: Subject, sentence: str, target: str | None, head: Head, chat: bool) -> Batch:
    text: Any = sentence if target is None else Pair(sentence, target)
    stacks = subject.anatomy.stacks
    if "cross" in stacks and target is None:
        if head.stack != "enc":
            raise UsageError(f"{head} reads a translation too; give it with --target (target=...).")
        stacks = ("enc",)
    batch, report = encode_one(subject, text, stacks=stacks, chat=chat)
    if report.truncated:
        intake = intake_of(subject.model, subject.tokenizer)
        limits = sorted({limit for limit in (intake.source_limit, intake.target_limit) if limit})
        raise InputError(
            f"The sentence is longer than the {' or '.join(map(str, limits))} tokens that "
            f"{subject.name} takes; shorten it."
        )
    return batch


def _shade(weight: float) -> str:
    """A character for a weight, spread by its square root so that small ones show."""
    return _SHADES[min(len(_SHADES) - 1, int(np.sqrt(weight) * len(_SHADES)))]


def _named(strongest: list[tuple[str, float]]) -> Text:
    parts: list[Any] = []
    for token, weight in strongest:
        parts += [(token, ""), (f" {weight:.2f}  ", "dim")]
    line = Text.assemble(*parts)
    line.rstrip()
    return line
