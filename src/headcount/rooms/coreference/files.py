"""Coreference: passages of documents, with the mentions of each entity.

From JSON lines (``sents``, ``clusters``), from the ``Entity=`` brackets of CoNLL-U, and from GAP's
table of ambiguous pronouns (Webster et al. 2018).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from headcount.errors import Fault, InputError, UsageError, sound
from headcount.text import (
    AS_USUAL,
    PASSAGE,
    Clusters,
    CorpusFormat,
    Line,
    ReadOptions,
    Sentence,
    Span,
    TextFile,
    Word,
    cells_of,
    inside,
    joined,
    need,
    record,
    spaced,
    split_words,
    whole_number,
)

# --- Documents cut into passages ----------------------------------------------------------------


def split_passages(
    sentences: Sequence[Sentence], clusters: Clusters, most: int = PASSAGE, doc: str = ""
) -> Iterator[Sentence]:
    """A document's passages of at most `most` words; a longer sentence is a passage of its own.

    Words and mentions count from the start of their passage, and heads stay within sentences, so
    a passage has a root for every sentence. An entity keeps the mentions that are in the passage,
    be it one.

    >>> from headcount.text.sentence import spaced
    >>> from headcount.text.sentence import Span, Word
    >>> texts = [spaced(map(Word, text.split())) for text in ("Ann left .", "She ran .", "Oh .")]
    >>> found = list(split_passages(texts, ((Span(0, 0), Span(3, 3)),), most=6))
    >>> [(each.text, each.clusters) for each in found]
    [('Ann left . She ran .', ((Span(first=0, last=0), Span(first=3, last=3)),)), ('Oh .', ())]
    """
    if most < 1:
        raise UsageError(f"A passage has {most} words; it must have 1 or more.")
    start = 0
    for number, group in enumerate(_groups(sentences, most)):
        whole = joined(*group)
        count = len(whole.words or ())
        yield replace(
            whole,
            clusters=inside(clusters, start, count),
            comments={**whole.comments, "doc": doc, "passage": str(number)},
        )
        start += count


def cut_passage(passage: Sentence, first: int, end: int) -> Sentence:
    """The words of a passage from `first` to before `end`, as a passage of their own.

    >>> from headcount.text.sentence import Span, Word, spaced
    >>> whole = replace(spaced(map(Word, "Oh . Ann lost her key .".split())),
    ...                 clusters=((Span(2, 2), Span(4, 4)),))
    >>> cut_passage(whole, 2, 7).text, cut_passage(whole, 2, 7).clusters
    ('Ann lost her key .', ((Span(first=0, last=0), Span(first=2, last=2)),))
    """
    words = (passage.words or ())[first:end]
    start = words[0].start or 0

    def moved(word: Word) -> Word:
        head = word.head and (word.head - first if first < word.head <= end else None)
        places = {name: getattr(word, name) for name in ("start", "end")}
        return replace(word, head=head, **{name: at and at - start for name, at in places.items()})

    return Sentence(
        passage.text[start : words[-1].end],
        tuple(map(moved, words)),
        comments=passage.comments,
        clusters=inside(passage.clusters, first, end - first),
    )


def _groups(sentences: Sequence[Sentence], most: int) -> Iterator[list[Sentence]]:
    group: list[Sentence] = []
    room = most
    for sentence in sentences:
        size = len(sentence.words or ())
        if group and size > room:
            yield group
            group, room = [], most
        group.append(sentence)
        room -= size
    if group:
        yield group


# --- The documents of a treebank, by its ``newdoc`` comments ------------------------------------


def documents(sentences: Iterable[Sentence]) -> Iterator[tuple[str, list[Sentence]]]:
    """Each document's name and sentences; without a ``newdoc`` all is one.

    >>> texts = [Sentence("A", comments={"newdoc id": "x"}), Sentence("B")]
    >>> [(name, len(found)) for name, found in documents(texts)]
    [('x', 2)]
    """
    name, found = "", list[Sentence]()
    for sentence in sentences:
        opened = [key for key in sentence.comments if key.split()[0] == "newdoc"]
        if opened and found:
            yield name, found
            found = []
        if opened:
            name = sentence.comments[opened[0]]
        found.append(sentence)
    if found:
        yield name, found


# --- Coreference from JSON lines ----------------------------------------------------------------

#: What a line must have; ``doc`` names it, and mentions count words through the document.
COREF_KEYS = ("sents", "clusters")


def read_coref(
    file: TextFile, skipped: Counter[str], how: ReadOptions = AS_USUAL
) -> Iterator[Sentence]:
    """The passages of a file's documents, with their clusters.

    Texts are the words with spaces between, unless `trees` has the same document (``newdoc id``)
    in the same words: then its sentences are taken, with their true texts, tags and heads.

    >>> import io
    >>> raw = b'{"sents": [["Ann", "left", "."], ["She", "ran"]], "clusters": [[[0, 0], [3, 3]]]}'
    >>> passage, = read_coref(TextFile("x.jsonl", lambda: io.BytesIO(raw)), Counter())
    >>> passage.text, passage.clusters
    ('Ann left . She ran', ((Span(first=0, last=0), Span(first=3, last=3)),))
    """
    known = {} if how.trees is None else dict(documents(how.trees))
    most = PASSAGE if how.passage is None else how.passage

    def read(line: Line) -> list[Sentence]:
        number, text = line
        where = f"{file.name}, line {number}"
        found = record(text, where, COREF_KEYS, "a document with coreference")
        _check(found, where)
        words = [sent for sent in found["sents"] if sent]
        count = sum(map(len, words))
        clusters = checked_clusters(found["clusters"], count, where, skipped, how.strict)
        doc = str(found.get("doc", number))
        sentences = [spaced(map(Word, sent), line=number) for sent in words]
        if known:  # the treebank's sentences where they have the same words
            trees = known.get(doc, [])
            if [[word.form for word in each.words or ()] for each in trees] == words:
                sentences = trees
            else:
                skipped["trees of documents in other words"] += 1
        return list(split_passages(sentences, clusters, most, doc))

    for found in sound(file.filled(skipped), read, skipped, how.strict):
        yield from found


def _check(found: Mapping[str, Any], where: str) -> None:
    sents, clusters = found["sents"], found["clusters"]
    need(
        isinstance(sents, list)
        and all(isinstance(sent, list) for sent in sents)
        and all(isinstance(word, str) and word for sent in sents for word in sent),
        where,
        "has sents that are not lists of words",
        "lines with sents that are not lists of words",
    )
    need(any(sents), where, "has no word", "lines without a word")
    need(
        isinstance(clusters, list) and all(isinstance(each, list) for each in clusters),
        where,
        "has clusters that are not lists of [first, last]",
        "lines with clusters that are not lists",
    )


# --- Coreference from the ``Entity=`` brackets of CoNLL-U ---------------------------------------
# ``(e1`` opens a mention of entity e1, ``e1)`` closes it, ``(e1)`` is one word; after the entity's
# name further fields may follow, with hyphens between.

#: An opening bracket with what stands behind it, a closing one with what stands before it, or the
#: rest of a text, so that a long name is gone through once.
_BRACKETS = re.compile(r"\(([^()]*)|([^()]*+)\)|[^()]+")


def brackets(text: str) -> Iterator[tuple[str, str]]:
    """What stands behind each opening bracket, or before each closing one, in their order.

    >>> list(brackets("(e1-person(e2)e3)"))
    [('e1-person', ''), ('e2', ''), ('', ''), ('', 'e3')]
    """
    for found in _BRACKETS.finditer(text):
        if found[0].startswith("(") or found[0].endswith(")"):
            yield found[1] or "", found[2] or ""


#: What the header calls an entity's name.
_NAMES = ("eid", "GRP")


def treebank_passages(
    sentences: Iterable[Sentence], skipped: Counter[str], how: ReadOptions = AS_USUAL
) -> Iterator[Sentence]:
    """The passages of a treebank's documents, with the clusters that its brackets mark."""
    most = PASSAGE if how.passage is None else how.passage
    for doc, found in documents(sentences):
        clusters = entity_clusters(found, doc, skipped, how.strict)
        yield from split_passages(found, clusters, most, doc)


def entity_clusters(
    sentences: Iterable[Sentence], doc: str, skipped: Counter[str], strict: bool = False
) -> Clusters:
    """The clusters of one document, words counted through it.

    >>> from headcount.text.sentence import spaced
    >>> from headcount.text.sentence import Word
    >>> marks = {"Ann": "(1-person(2-person)", "B": "1)"}
    >>> words = [Word(form, misc={"Entity": mark}) for form, mark in marks.items()]
    >>> entity_clusters([spaced(words)], "x", Counter())
    ((Span(first=0, last=0),), (Span(first=0, last=1),))
    """
    found: dict[str, list[Span]] = {}
    where, start, field = f"Document {doc}", 0, 0
    for sentence in sentences:
        names = sentence.comments.get("global.Entity", "").split("-")
        field = next((names.index(name) for name in _NAMES if name in names), field)
        for name, span in _mentions(sentence, field, where, skipped, strict):
            found.setdefault(name, []).append(Span(start + span.first, start + span.last))
        start += len(sentence.words or ())
    return checked_clusters(found.values(), start, where, skipped, strict)


def _mentions(
    sentence: Sentence, field: int, where: str, skipped: Counter[str], strict: bool
) -> Iterator[tuple[str, Span]]:
    opened: list[tuple[str, int]] = []
    for place, word in enumerate(sentence.words or ()):
        for starts, ends in brackets(word.misc.get("Entity") or ""):
            if starts:
                fields = starts.split("-")
                opened.append((fields[field if field < len(fields) else 0], place))
                continue
            # The last one open, or of those of its name the last.
            known = [n for n, (name, _) in enumerate(opened) if not ends or name == ends]
            if known:
                name, first = opened.pop(known[-1])
                yield name, Span(first, place)
            else:
                _unpaired(f"{where} closes a mention of '{ends}' that is not open", skipped, strict)
    for name, _ in opened:
        _unpaired(f"{where} does not close a mention of '{name}' in its sentence", skipped, strict)


def _unpaired(fault: str, skipped: Counter[str], strict: bool) -> None:
    if strict:
        raise Fault(f"{fault}.", "Entity brackets without a partner")
    skipped["Entity brackets without a partner"] += 1


# --- Ambiguous pronouns from GAP's TSV (Webster et al. 2018) ------------------------------------

#: The columns that must be there, by which GAP's files are known.
GAP_HEADER = (
    *("ID", "Text", "Pronoun", "Pronoun-offset"),
    *("A", "A-offset", "A-coref", "B", "B-offset", "B-coref"),
)
_TRUTH = {"TRUE": True, "FALSE": False}

#: A line's number, and its cells by column.
GapRow = tuple[int, dict[str, str]]


def read_gap(
    file: TextFile, skipped: Counter[str], how: ReadOptions = AS_USUAL
) -> Iterator[Sentence]:
    """The texts of a file, with the pronoun and the names it may mean.

    The pronoun and the name that it means are one cluster; a name that it does not mean is a
    cluster of one. The comments ``pronoun``, ``A`` and ``B`` say which word each of them starts
    at, ``A-coref`` and ``B-coref`` whether it is meant.
    """
    return sound(
        _gap_rows(file, skipped), lambda row: _gap_sentence(row, file.name), skipped, how.strict
    )


def _gap_rows(file: TextFile, skipped: Counter[str]) -> Iterator[GapRow]:
    rows = cells_of(file, skipped)
    _, names = next(rows, (0, list(GAP_HEADER)))  # an empty file has no rows, whatever its kind
    missing = [column for column in GAP_HEADER if column not in names]
    if missing:
        raise InputError(
            f"{file.name} is not a GAP file: its first line does not name {', '.join(missing)}; "
            f"GAP has {', '.join(GAP_HEADER)}."
        )
    for number, cells in rows:
        yield number, dict(zip(names, cells, strict=False))


def _gap_sentence(row: GapRow, name: str) -> Sentence:
    number, cells = row
    where = f"{name}, line {number}"
    missing = [column for column in GAP_HEADER if column not in cells]
    need(
        not missing,
        where,
        f"has {len(cells)} columns and no {', '.join(missing)}; GAP has {', '.join(GAP_HEADER)}",
        "lines with missing columns",
    )
    words = split_words(cells["Text"])
    spans = {key: _gap_span(cells, key, words, where) for key in ("Pronoun", "A", "B")}
    for key in ("A", "B"):
        truth = cells[f"{key}-coref"]
        need(
            truth.upper() in _TRUTH,
            where,
            f"has {key}-coref '{truth}'; it is TRUE or FALSE",
            "lines without TRUE or FALSE",
        )
    meant = {key: _TRUTH[cells[f"{key}-coref"].upper()] for key in ("A", "B")}
    together = {spans["Pronoun"], *(spans[key] for key in meant if meant[key])}
    others = [(spans[key],) for key in meant if not meant[key]]
    return Sentence(
        cells["Text"],
        words,
        comments={
            "sent_id": cells["ID"],
            "A-coref": cells["A-coref"],
            "B-coref": cells["B-coref"],
            "pronoun": str(spans["Pronoun"].first),
            "A": str(spans["A"].first),
            "B": str(spans["B"].first),
        },
        line=number,
        clusters=tuple(sorted([tuple(sorted(together)), *others])),
    )


def _gap_span(cells: Mapping[str, str], key: str, words: tuple[Word, ...], where: str) -> Span:
    """The words of the pronoun or a name, whose offset must be right."""
    text, name, offset = cells["Text"], cells[key], cells[f"{key}-offset"]
    given = whole_number(offset)
    start = -1 if given is None else given
    end = start + len(name)
    inside = [
        number
        for number, word in enumerate(words)
        if word.start is not None and word.end is not None and word.start < end and start < word.end
    ]
    need(
        start >= 0 and bool(inside) and text[start:end] == name,
        where,
        f"has '{name}' at {offset[:20]}, where the text has '{text[max(start, 0) : max(end, 0)]}'",
        "lines with a wrong offset",
    )
    return Span(inside[0], inside[-1])


# --- Among the formats of corpora ---------------------------------------------------------------


COREF = CorpusFormat(read_coref, keys=COREF_KEYS)
GAP = CorpusFormat(read_gap, header=GAP_HEADER)


def checked_clusters(
    clusters: Iterable[Iterable[Any]],
    words: int,
    where: str,
    skipped: Counter[str],
    strict: bool = False,
) -> Clusters:
    """The clusters in the order of their first mentions, without mentions that cannot be.

    A mention outside the text is skipped and counted, and so is one that stands in two clusters,
    after the first, or twice in one. Mentions may nest, and cross.

    >>> checked_clusters([[[3, 4], [0, 1]], [[0, 1], [2, 2], [7, 9]]], 5, "Text 1", Counter())
    ((Span(first=0, last=1), Span(first=3, last=4)), (Span(first=2, last=2),))
    """
    seen: dict[Span, int] = {}
    for number, cluster in enumerate(clusters):
        for mention in cluster:
            fault = _fault(mention, number, words, seen, where)
            if fault is None:
                seen[Span(*mention)] = number
            elif strict:
                raise fault
            else:
                skipped[fault.reason] += 1
    found: dict[int, list[Span]] = {}
    for span, number in sorted(seen.items()):
        found.setdefault(number, []).append(span)
    return tuple(tuple(spans) for spans in found.values())


def _fault(
    mention: Any, cluster: int, words: int, seen: dict[Span, int], where: str
) -> Fault | None:
    pair = isinstance(mention, Sequence) and [type(place) for place in mention] == [int, int]
    if not pair or not 0 <= mention[0] <= mention[1] < words:
        return Fault(
            f"{where} has the mention {mention}; a mention is [first, last], two of its {words} "
            "words counted from 0.",
            "mentions outside the text",
        )
    found = seen.get(Span(*mention))
    if found is None:
        return None
    if found == cluster:
        return Fault(f"{where} has the mention {mention} twice.", "mentions given twice")
    return Fault(
        f"{where} has the mention {mention} in two clusters; a mention means one thing.",
        "mentions in two clusters",
    )
