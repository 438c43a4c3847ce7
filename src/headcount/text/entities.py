"""Coreference from the ``Entity=`` brackets of CoNLL-U, as GUM and CorefUD write them.

``(e1`` opens a mention of entity e1, ``e1)`` closes it, ``(e1)`` is one word; after the entity's
name further fields may follow, with hyphens between.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator

from headcount.text.clusters import Clusters, checked_clusters
from headcount.text.documents import documents
from headcount.text.faults import Fault
from headcount.text.passages import PASSAGE, passages
from headcount.text.sentence import Sentence, Span

__all__ = ["entity_clusters", "entity_passages"]

_BRACKET = re.compile(r"\(([^()]*)|([^()]*)\)")
#: What the header calls an entity's name.
_NAMES = ("eid", "GRP")


def entity_passages(
    sentences: Iterable[Sentence],
    skipped: Counter[str],
    *,
    passage: int = PASSAGE,
    strict: bool = False,
) -> Iterator[Sentence]:
    """The passages of a treebank's documents, with the clusters that its brackets mark."""
    for doc, found in documents(sentences):
        yield from passages(found, entity_clusters(found, doc, skipped, strict), passage, doc)


def entity_clusters(
    sentences: Iterable[Sentence], doc: str, skipped: Counter[str], strict: bool = False
) -> Clusters:
    """The clusters of one document, words counted through it.

    >>> from headcount.text.joined import spaced
    >>> from headcount.text.sentence import Word
    >>> marks = {"Ann": "(1-person(2-person)", "B": "1)"}
    >>> words = [Word(form, misc={"Entity": mark}) for form, mark in marks.items()]
    >>> entity_clusters([spaced(words)], "x", Counter())
    ((Span(first=0, last=0),), (Span(first=0, last=1),))
    """
    found: dict[str, list[Span]] = {}
    where, start, field = f"Document {doc}", 0, 0
    for sentence in sentences:
        field = _field(sentence.comments.get("global.Entity"), field)
        for name, span in _mentions(sentence, field, where, skipped, strict):
            found.setdefault(name, []).append(Span(start + span.first, start + span.last))
        start += len(sentence.words or ())
    return checked_clusters(found.values(), start, where, skipped, strict)


def _field(header: str | None, usual: int) -> int:
    """Which of the fields between hyphens is the entity's name."""
    names = (header or "").split("-")
    return next((names.index(name) for name in _NAMES if name in names), usual)


def _mentions(
    sentence: Sentence, field: int, where: str, skipped: Counter[str], strict: bool
) -> Iterator[tuple[str, Span]]:
    opened: list[tuple[str, int]] = []
    for place, word in enumerate(sentence.words or ()):
        for starts, ends in _BRACKET.findall(word.misc.get("Entity") or ""):
            if starts:
                opened.append((_name(starts, field), place))
                continue
            partner = _partner(opened, ends)
            if partner is None:
                _alone(f"{where} closes a mention of '{ends}' that is not open", skipped, strict)
            else:
                yield partner[0], Span(partner[1], place)
    for name, _ in opened:
        _alone(f"{where} does not close a mention of '{name}' in its sentence", skipped, strict)


def _name(fields: str, field: int) -> str:
    cells = fields.split("-")
    return cells[field] if field < len(cells) else cells[0]


def _partner(opened: list[tuple[str, int]], ends: str) -> tuple[str, int] | None:
    """The mention that a bracket closes: the last one open, or of those of its name the last."""
    for place in reversed(range(len(opened))):
        if not ends or opened[place][0] == ends:
            return opened.pop(place)
    return None


def _alone(said: str, skipped: Counter[str], strict: bool) -> None:
    if strict:
        raise Fault(f"{said}.", "Entity brackets without a partner")
    skipped["Entity brackets without a partner"] += 1
