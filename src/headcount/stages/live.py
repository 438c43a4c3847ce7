"""A model at hand: a sentence goes in, every head's map comes out, with some heads switched off."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from headcount.columns import Column
from headcount.exhibits import Exhibit
from headcount.heads import Head
from headcount.pruning.remove import read_heads
from headcount.report.source import Source, read_source
from headcount.run import Run
from headcount.stages.exhibits import look_at
from headcount.stages.speaking import said_by
from headcount.subject import Subject
from headcount.table import HeadTable
from headcount.wiring import valve

__all__ = ["Live", "live_of"]

_GROUP = "On this sentence"
_SHARP = Column(
    "sharpness",
    meaning="The mean over this sentence's tokens of the head's largest weight.",
    range=(0, 1),
    group=_GROUP,
    format=".2f",
)
_CHANGE = Column(
    "changed",
    meaning="How much of the head's attention went elsewhere when heads were switched off.",
    range=(0, 1),
    group=_GROUP,
    format=".3f",
)


@dataclass
class Live:
    """A model that is asked sentence by sentence; `source` is what a run knows of it already."""

    subject: Subject
    source: Source | None = None
    heads: list[str] = field(init=False)

    def __post_init__(self) -> None:
        self.heads = [str(head) for head in self.subject.heads]

    @property
    def name(self) -> str:
        """What the user calls the model."""
        return self.subject.name

    def look(
        self, text: str, second: str = "", shut: Sequence[str] = ()
    ) -> tuple[list[dict[str, Any]], Source]:
        """What the model says to a text, whole and without some heads; and all maps, as a page."""
        off = read_heads(list(shut), self.subject.heads) if shut else []
        whole = self._said(text, second, [])
        item = self._item(text, second, whole)
        seen = self._seen(item, [])
        answers = [{"without": [], **answer} for answer in whole]
        exhibits = [replace(seen, id="whole", title=f"All heads on: {seen.title}")]
        if off:
            cut, after = self._said(text, second, off), self._seen(item, off)
            answers += [{"without": [str(head) for head in off], **answer} for answer in cut]
            names = ", ".join(map(str, off))
            exhibits.append(replace(after, id="cut", title=f"Without {names}: {after.title}"))
        return answers, self._page(exhibits)

    def _said(self, text: str, second: str, off: Sequence[Head]) -> list[dict[str, Any]]:
        with valve(self.subject, dict.fromkeys(map(str, off), 0.0)):
            return said_by(self.subject, text, second)

    def _seen(self, item: str | tuple[str, str], off: Sequence[Head]) -> Exhibit:
        with valve(self.subject, dict.fromkeys(map(str, off), 0.0)):
            return look_at(self.subject, item)

    def _item(self, text: str, second: str, said: list[dict[str, Any]]) -> str | tuple[str, str]:
        """What heads are looked at on: for a translator its whole self's words, heads off or not.

        On the same words, maps can be compared.
        """
        if "cross" in self.subject.anatomy.stacks and not second:
            return text, said[0].get("text") or text
        return (text, second) if second else text

    def _page(self, exhibits: list[Exhibit]) -> Source:
        about = {"model": self.subject.name, "subject": self.subject.describe()}
        columns = [_SHARP, _CHANGE] if len(exhibits) > 1 else [_SHARP]
        values = {"sharpness": _sharpness(self.subject.heads, exhibits[-1])}
        if len(exhibits) > 1:
            values["changed"] = _changed(self.subject.heads, *exhibits)
        table = HeadTable.of(self.subject.heads, values, columns, provenance=about)
        if self.source is None:
            return Source(table, exhibits=exhibits)
        return replace(
            self.source, table=self.source.table.join(table, replace=True), exhibits=exhibits
        )


def live_of(subject: Subject, run: str | Path | None = None) -> Live:
    """A model to ask, with what a run of it knows."""
    if run is None:
        return Live(subject)
    opened = Run.open(run, create=False)
    opened.check_subject(
        HeadTable.of(subject.heads, {}, provenance={"weights": subject.weights_hash})
    )
    return Live(subject, read_source(opened, exhibits=False))


def _sharpness(heads: Sequence[Head], seen: Exhibit) -> np.ndarray:
    return np.array([_map(heads, head, seen).max(-1).mean() for head in heads])


def _changed(heads: Sequence[Head], before: Exhibit, after: Exhibit) -> np.ndarray:
    """Half of the summed differences of weights, a row's mean; NA where the text became another."""
    found = []
    for head in heads:
        was, is_now = _map(heads, head, before), _map(heads, head, after)
        same = was.shape == is_now.shape
        found.append(float(np.abs(was - is_now).sum(-1).mean() / 2) if same else np.nan)
    return np.array(found)


def _map(heads: Sequence[Head], head: Head, seen: Exhibit) -> np.ndarray:
    """A head's map; a pruned layer holds only the heads that are left, in their order."""
    own = [one for one in heads if one[:2] == head[:2]]
    return seen.maps[head.stack, head.layer][own.index(head)]
