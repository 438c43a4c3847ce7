"""What a corpus is made of: a sentence, with or without its words, or a pair of texts.

Words have places in their text and may have a tree; a sentence may have coreference and predicates.
Trees and mentions are checked here, whichever file they come from.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, pairwise
from typing import NamedTuple

from headcount.errors import Fault


@dataclass(frozen=True, slots=True)
class Word:
    """One syntactic word, with what a treebank says of it.

    `head` counts words from 1, as CoNLL-U does; 0 is the root and None means not annotated.
    `start` and `end` are the word's place in the sentence's text, in characters.
    """

    form: str
    lemma: str | None = None
    upos: str | None = None
    xpos: str | None = None
    feats: Mapping[str, str | None] = field(default_factory=dict)
    head: int | None = None
    deprel: str | None = None
    misc: Mapping[str, str | None] = field(default_factory=dict)
    start: int | None = None
    end: int | None = None


@dataclass(frozen=True, slots=True)
class Multiword:
    """Several words written as one, such as German *zum*; words counted from 1, both ends in."""

    first: int
    last: int
    form: str


class Span(NamedTuple):
    """Words of a sentence from `first` to `last`, counted from 0, both ends in.

    >>> Span(2, 4).last
    4
    """

    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Argument:
    """What a predicate says something of: a label such as ARG0, and its words."""

    label: str
    span: Span


@dataclass(frozen=True, slots=True)
class Predicate:
    """A word that takes arguments; `word` is counted from 0, `sense` is its frame or roleset."""

    word: int
    sense: str | None = None
    arguments: tuple[Argument, ...] = ()


@dataclass(frozen=True, slots=True)
class Sentence:
    """One text, or a passage; `words` when it comes from a treebank or a parser.

    `clusters` are the mentions of each entity (coreference), in the order of the text;
    `predicates` the verbs, and nouns, whose arguments are known.

    >>> Sentence("Rain fell.").words is None
    True
    """

    text: str
    words: tuple[Word, ...] | None = None
    multiwords: tuple[Multiword, ...] = ()
    comments: Mapping[str, str] = field(default_factory=dict)
    line: int | None = field(default=None, compare=False)
    clusters: tuple[tuple[Span, ...], ...] = ()
    predicates: tuple[Predicate, ...] = ()

    @property
    def has_tree(self) -> bool:
        """Whether the words form one tree: one root, and every word hangs from it.

        >>> Sentence("Go on", (Word("Go", head=0), Word("on", head=1))).has_tree
        True
        >>> Sentence("Go on", (Word("Go", head=2), Word("on", head=1))).has_tree
        False
        """
        words = self.words or ()
        if not words or any(word.head is None for word in words):
            return False
        try:
            check_tree(words, "", Counter())
        except Fault:
            return False
        return True


@dataclass(frozen=True, slots=True)
class Pair:
    """Two texts: source and target for a translator, text and second text for an encoder.

    `annotated` holds the same two texts with their words, where those are known.

    >>> Pair("Rain.", "Regen.").target
    'Regen.'
    """

    source: str
    target: str
    line: int | None = field(default=None, compare=False)
    annotated: tuple[Sentence | None, Sentence | None] = (None, None)


Item = Sentence | Pair


def texts_of(item: Item) -> tuple[str, ...]:
    """The texts of a sentence (one) or a pair (two).

    >>> texts_of(Pair("Rain.", "Regen."))
    ('Rain.', 'Regen.')
    """
    return (item.text,) if isinstance(item, Sentence) else (item.source, item.target)


def sentences_of(item: Item) -> tuple[Sentence | None, ...]:
    """The annotated sentences of an item, one a text; None where the words are not known.

    >>> sentences_of(Sentence("Rain.")), sentences_of(Pair("Rain.", "Regen."))
    ((None,), (None, None))
    """
    found = (item,) if isinstance(item, Sentence) else item.annotated
    return tuple(each if each is not None and each.words else None for each in found)


# --- Dependency trees checked -------------------------------------------------------------------


def check_tree(words: Sequence[Word], where: str, skipped: Counter[str]) -> None:
    """Refuse heads that make no tree; words without a head are counted, none at all is no fault.

    >>> check_tree([Word("Go", head=2), Word("on", head=1)], "Sentence 1", Counter())
    Traceback (most recent call last):
        ...
    headcount.errors.Fault: Sentence 1 has a cycle: word 1 ('Go') hangs from itself ...
    """
    heads = [word.head for word in words]
    given = [head for head in heads if head is not None]
    if not given:
        return
    for number, word in enumerate(words, start=1):
        if word.head is not None and not 0 <= word.head <= len(words):
            raise Fault(
                f"{where} has a head out of range: word {number} ('{word.form}') hangs from "
                f"{word.head}, and there are {len(words)} words.",
                "sentences with a head out of range",
            )
    if number := _circling(heads):
        raise Fault(
            f"{where} has a cycle: word {number} ('{words[number - 1].form}') hangs from itself by "
            "way of its heads.",
            "sentences with a cycle",
        )
    roots = given.count(0)
    if roots > 1:
        raise Fault(
            f"{where} has {roots} roots; a tree has one word with head 0.",
            "sentences with several roots",
        )
    if not roots and len(given) == len(heads):
        raise Fault(
            f"{where} has no root; a tree has one word with head 0.", "sentences without a root"
        )
    if len(given) < len(heads):
        skipped["words without a head"] += len(heads) - len(given)


def _circling(heads: Sequence[int | None]) -> int:
    """The first word that hangs from itself, or 0; each word is climbed from once."""
    met, circles = [0] * (len(heads) + 1), list[int]()
    for number in range(1, len(heads) + 1):
        here = number
        while here and not met[here]:
            met[here], here = number, heads[here - 1] or 0
        if here and met[here] == number:
            first, step = here, heads[here - 1] or 0
            while step != here:
                first, step = min(first, step), heads[step - 1] or 0
            circles.append(first)
    return min(circles, default=0)


# --- Clusters of mentions, checked against the words they are to point at -----------------------

#: The mentions of each entity.
Clusters = tuple[tuple[Span, ...], ...]


def inside(clusters: Clusters, start: int, count: int) -> Clusters:
    """The mentions that lie within `count` words from `start`, counted from there.

    >>> inside(((Span(0, 1), Span(6, 7)),), 5, 5)
    ((Span(first=1, last=2),),)
    """
    kept = (
        tuple(
            Span(span.first - start, span.last - start)
            for span in cluster
            if start <= span.first and span.last < start + count
        )
        for cluster in clusters
    )
    return tuple(cluster for cluster in kept if cluster)


# --- Sentences put together: words into a text, and several texts into one ----------------------


def spaced(
    words: Iterable[Word],
    *,
    predicates: tuple[Predicate, ...] = (),
    comments: Mapping[str, str] | None = None,
    line: int | None = None,
) -> Sentence:
    """A sentence of words with a space between each two, for data that has no text.

    >>> sentence = spaced([Word("Rain"), Word("fell"), Word(".")])
    >>> sentence.text, [(word.start, word.end) for word in sentence.words]
    ('Rain fell .', [(0, 4), (5, 9), (10, 11)])
    """
    placed, here = [], 0
    for word in words:
        placed.append(replace(word, start=here, end=here + len(word.form)))
        here += len(word.form) + 1
    text = " ".join(word.form for word in placed)
    return Sentence(text, tuple(placed), line=line, predicates=predicates, comments=comments or {})


def joined(*sentences: Sentence) -> Sentence:
    """Sentences as one text with spaces between; words and characters count on.

    Each keeps its own root, so the whole has several. Comments are the first one's.

    >>> both = joined(spaced([Word("Rain", head=0)]), spaced([Word("Go", head=0)]))
    >>> both.text, [(word.form, word.start) for word in both.words]
    ('Rain Go', [('Rain', 0), ('Go', 5)])
    """
    words: list[Word] = []
    multiwords: list[Multiword] = []
    clusters: list[tuple[Span, ...]] = []
    predicates: list[Predicate] = []
    letters = 0
    for each in sentences:
        before = len(words)

        def later(span: Span, before: int = before) -> Span:
            return Span(span.first + before, span.last + before)

        multiwords += [
            Multiword(one.first + before, one.last + before, one.form) for one in each.multiwords
        ]
        clusters += [tuple(map(later, cluster)) for cluster in each.clusters]
        predicates += [
            replace(
                one,
                word=one.word + before,
                arguments=tuple(Argument(a.label, later(a.span)) for a in one.arguments),
            )
            for one in each.predicates
        ]
        words += [
            replace(
                word,
                head=word.head and word.head + before,
                start=None if word.start is None else word.start + letters,
                end=None if word.end is None else word.end + letters,
            )
            for word in each.words or ()
        ]
        letters += len(each.text) + 1
    return Sentence(
        text=" ".join(each.text for each in sentences),
        words=tuple(words),
        multiwords=tuple(multiwords),
        comments=sentences[0].comments,
        line=sentences[0].line,
        clusters=tuple(clusters),
        predicates=tuple(predicates),
    )


# --- Words of a plain text, where no treebank and no parser says what they are ------------------

# Letters and digits that stand together are a word, and so is every other sign.
_WORD = re.compile(r"\w+|[^\w\s]")


def split_words(text: str) -> tuple[Word, ...]:
    """The words of a text, each with its place: runs of letters and digits, and single signs.

    >>> [(word.form, word.start) for word in split_words("Ann's cat.")]
    [('Ann', 0), ("'", 3), ('s', 4), ('cat', 6), ('.', 9)]
    """
    return tuple(
        Word(found[0], start=found.start(), end=found.end()) for found in _WORD.finditer(text)
    )


# --- Where words stand in a text that is known, or put together from them -----------------------


class Form(NamedTuple):
    """Something written: a word or a multiword token, and whether a space follows."""

    text: str
    spaced: bool = True


def place_forms(
    forms: Sequence[Form], text: str | None, skipped: Counter[str]
) -> tuple[str, list[tuple[int, int]]]:
    """The text and the place of each form in it.

    Where the text disagrees with the forms, the forms win: places must be true.

    >>> place_forms([Form("Go", spaced=False), Form("!")], "Go !", Counter())
    ('Go !', [(0, 2), (3, 4)])
    >>> place_forms([Form("Go", spaced=False), Form("!")], "Stop!", Counter())
    ('Go!', [(0, 2), (2, 3)])
    """
    if text is not None:
        found = _find(forms, text)
        if found is not None:
            return text, found
        skipped["text comments that disagree with the words"] += 1
    places, here = [], 0
    for form in forms:
        places.append((here, here + len(form.text)))
        here += len(form.text) + form.spaced
    text = "".join(form.text + " " * form.spaced for form in forms)
    return text[: places[-1][1] if places else 0], places


def _find(forms: Sequence[Form], text: str) -> list[tuple[int, int]] | None:
    """Where each form stands, with only white space between; None if that fails."""
    places, here = [], 0
    for form in forms:
        while here < len(text) and text[here].isspace():
            here += 1
        if not text.startswith(form.text, here):
            return None
        places.append((here, here + len(form.text)))
        here += len(form.text)
    return None if text[here:].strip() else places


def divided(form: str, place: tuple[int, int], parts: Sequence[str]) -> list[tuple[int, int]]:
    """The places of a multiword token's words: divided if they spell it, else all of it each.

    >>> divided("don't", (3, 8), ["do", "n't"]), divided("zum", (0, 3), ["zu", "dem"])
    ([(3, 5), (5, 8)], [(0, 3), (0, 3)])
    """
    start, end = place
    if "".join(parts) != form or end - start != len(form):
        return [place] * len(parts)
    ends = list(accumulate(map(len, parts), initial=start))
    return list(pairwise(ends))
