"""Heads on one sentence: the map of one, or all of a layer, in a terminal or a notebook."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from headcount.errors import InputError, UnknownHead, UsageError
from headcount.models import Subject, check_subject, refuse_nan
from headcount.records import Drawn, Head, check_heads, old_keywords, parse_head
from headcount.rooms.exhibits import encode_one, token_texts, visible_token
from headcount.rooms.show.notebook import template
from headcount.text import Batch, Pair, intake_of
from headcount.wiring import Needs, Sighting, tap

#: Shades for a weight, from nothing to all.
_SHADES = " ·░▒▓█"


@dataclass(frozen=True, repr=False, eq=False)
class View(Drawn):
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
        labels, keys = _shown(self.queries), _shown(self.keys)
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
        return _html([self], lines=max(self.weights.shape) <= _TANGLE)


@dataclass(frozen=True, repr=False, eq=False)
class LayerView(Drawn):
    """All heads of a layer on one sentence, a `View` each.

    >>> view = View(Head("enc", 0, 1), ["a", "b"], ["a", "b"], np.array([[0, 1], [0.5, 0.5]]))
    >>> LayerView([view, view])
    LayerView(enc.0: 2 heads, 2 queries x 2 keys)
    """

    views: Sequence[View]

    def __repr__(self) -> str:
        first = self.views[0]
        sizes = f"{len(first.queries)} queries x {len(first.keys)} keys"
        return f"LayerView({_layer(first.head)}: {len(self.views)} heads, {sizes})"

    def to_dict(self) -> dict[str, Any]:
        """Everything, for machines."""
        return {"heads": [view.to_dict() for view in self.views]}

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """A line for each head: each key's mean weight in shades, then the largest weights."""
        first = self.views[0]
        yield Text.assemble(("Layer ", "dim"), (_layer(first.head), "bold"))
        queries, keys = _shown(first.queries), _shown(first.keys)
        for view in self.views:
            places = np.argsort(-view.weights, axis=None, kind="stable")[: view.top]
            pairs = [divmod(int(place), len(keys)) for place in places]
            named = [(f"{queries[q]} → {keys[k]}", float(view.weights[q, k])) for q, k in pairs]
            shades = "".join(map(_shade, view.weights.mean(0)))
            room = len(shades) + 60 <= options.max_width
            margin = f"{view.head!s:<11}" + (f"{shades}  " if room else "")
            yield Text.assemble((margin, "bold"), _named(named))
        yield Text("Shades: the mean weight of each key; then query → key, weight.", style="dim")

    def _repr_html_(self) -> str:
        """A small heat map of each head; tokens and weights are tooltips."""
        return _html(self.views, small=True)


@old_keywords()
def show(
    subject: Subject,
    sentence: str,
    head: str | Head | None = None,
    *,
    layer: str | int | None = None,
    target: str | None = None,
    chat: bool = False,
    top: int = 3,
) -> View | LayerView:
    """One head's attention on one sentence, or that of all heads of a `layer` (3, "enc.3").

    `target` is the translation (needed for decoder and cross heads of a translator), or the
    second text of a pair for an encoder.
    """
    check_subject(subject, "show(subject, sentence, head)")
    if head is None and layer is None:
        raise UsageError(
            "show has no head; write hc.show(subject, sentence, head), or layer=3 for a layer."
        )
    if head is not None and layer is not None:
        raise UsageError("show draws one head or one layer; give one of the two.")
    if layer is None:
        heads = [parse_head(head or "")]
        check_heads(heads, subject.heads)
    else:
        named = f"{subject.anatomy.stacks[0]}.{layer}" if str(layer).isdigit() else str(layer)
        if named.count(".") != 1:
            raise UsageError(
                f"'{layer}' is no layer; write a number counted from 0, or stack.layer, e.g. enc.5."
            )
        heads = [one for one in subject.heads if _layer(one) == named]
        if not heads:
            known = ", ".join(dict.fromkeys(map(_layer, subject.heads)))
            raise UnknownHead(f"There is no layer {named}; this model has {known}.")
    wanted = heads[0]
    if top < 1:
        raise UsageError(f"top is {top}; name 1 key or more.")
    if not sentence.strip() or (target is not None and not target.strip()):
        raise UsageError("The sentence is empty; give one with a word in it.")
    found: list[View] = []

    def receive(sighting: Sighting) -> None:
        if sighting.site.layer == wanted.layer and sighting.maps is not None:
            tokens = sighting.queries.tokens[0], sighting.keys.tokens[0]
            for one in heads:
                weights = sighting.maps[0, sighting.site.indices.index(one.index)].cpu().numpy()
                found.append(View(one, *tokens, weights, top))

    batch = _batch(subject, sentence, target, wanted, chat)
    with tap(subject, Needs(maps=True), stacks={wanted.stack}) as watch:
        watch(batch, receive=receive)
    for view in found:
        if np.isnan(view.weights).any():
            refuse_nan(subject, str(view.head))
    return found[0] if layer is None else LayerView(found)


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


def _layer(head: Head) -> str:
    return f"{head.stack}.{head.layer}"


def _shown(tokens: list[str]) -> list[str]:
    return [visible_token(token) for token in token_texts(tokens)]


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


# --- In a notebook ------------------------------------------------------------------------------

#: Lines that cover this share of a query's weight are drawn, and never more than so many.
_SHARE, _MOST = 0.8, 6
#: Pixels of a line of text, and of the room between the two columns of tokens.
_STEP, _ROOM, _LABEL = 18, 150, 110
#: More tokens than this make lines a tangle: then there is only the heat map.
_TANGLE = 60


def _html(views: Sequence[View], small: bool = False, lines: bool = False) -> str:
    """Heat maps, of the first also lines; a cell is shaded by the square root of its weight."""
    queries, keys = _shown(views[0].queries), _shown(views[0].keys)
    return template(__file__, "view.html").render(
        maps=[(view.head, view.weights.clip(0).tolist()) for view in views],
        queries=queries,
        keys=keys,
        small=small,
        lines=[*_links(views[0].weights)] if lines else None,
        height=_STEP * (max(len(queries), len(keys)) + 1),
        share=f"{_SHARE:.0%}",
        step=_STEP,
        room=_ROOM,
        label=_LABEL,
    )


def _links(weights: NDArray[np.float32]) -> Iterator[tuple[int, int, float]]:
    """Query, key and weight of the lines worth drawing."""
    for query, row in enumerate(weights):
        held = 0.0
        for key in np.argsort(-row, kind="stable")[:_MOST]:
            if held >= _SHARE or row[key] <= 0:
                break
            held += float(row[key])
            yield query, int(key), float(row[key])
