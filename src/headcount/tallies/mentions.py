"""The mentions of a text: their head words, and whether they are pronouns, names or nouns.

Clark et al., BlackBoxNLP 2019, section 4.3, score head words of mentions and tell pronoun, proper
and nominal mentions apart, but not how they found either; the rules here are ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headcount.tallies.concord import PRONOUNS, Concord, concord_of
from headcount.text.sentence import Sentence, Span, Word

__all__ = ["KINDS", "Mention", "head_word", "mentions_of"]

KINDS = ("pronoun", "proper", "nominal")

_FOLLOWING = """
    of in on at by for from with without to into onto about as than between among against during
    before after under over near through across behind who whom whose which that where when and or
    but if because , ; : ( – — -
"""
#: Where a noun phrase without a tree ends: what follows belongs to what the noun is said with.
_ENDS = frozenset(_FOLLOWING.split())
_POSSESSIVES = frozenset({"'s", "’s", "'", "’"})


@dataclass(frozen=True)
class Mention:
    """Words that name an entity; `head` is the place of its head word, counted from 0."""

    span: Span
    head: int
    #: Which cluster it belongs to.
    entity: int
    kind: str
    #: All its words, and its head word, in small letters.
    text: str
    word: str
    concord: Concord

    def overlaps(self, other: Mention) -> bool:
        """Whether the two share a word, as *his* and *his mother* do."""
        return self.span.first <= other.span.last and other.span.first <= self.span.last


def mentions_of(sentence: Sentence) -> list[Mention]:
    """The mentions of a text in the order of their head words; spans that point outside are none.

    >>> words = (Word("Ann"), Word("lost"), Word("her"), Word("key"))
    >>> text = Sentence("Ann lost her key", words, clusters=((Span(0, 0), Span(2, 2)),))
    >>> [(mention.word, mention.kind, mention.entity) for mention in mentions_of(text)]
    [('ann', 'proper', 0), ('her', 'pronoun', 0)]
    """
    words = sentence.words or ()
    found = [
        _mention(words, span, entity)
        for entity, spans in enumerate(sentence.clusters)
        for span in dict.fromkeys(spans)
        if 0 <= span.first <= span.last < len(words)
    ]
    return sorted(found, key=lambda mention: (mention.head, mention.span, mention.entity))


def head_word(words: Sequence[Word], span: Span) -> int:
    """The place of a span's head word.

    With a tree: the first word whose own head lies outside the span, punctuation aside. Without
    one: the last word before a preposition, a conjunction, a relative pronoun, a comma or a dash
    (*the mayor of York* has *mayor*), a possessive 's at the end left out.

    >>> words = [Word(form) for form in "the old mayor of York 's".split()]
    >>> head_word(words, Span(0, 5)), head_word(words, Span(4, 5))
    (2, 4)
    """
    inside = range(span.first, span.last + 1)
    if all(words[place].head is not None for place in inside):
        tops = [place for place in inside if not _within(words[place], span)]
        plain = [place for place in tops if words[place].upos != "PUNCT"]
        if tops:
            return (plain or tops)[0]
    last = span.last
    while last > span.first and words[last].form in _POSSESSIVES:
        last -= 1
    ends = [
        place for place in range(span.first + 1, last + 1) if words[place].form.lower() in _ENDS
    ]
    return ends[0] - 1 if ends else last


def _within(word: Word, span: Span) -> bool:
    assert word.head is not None
    return span.first <= word.head - 1 <= span.last


def _mention(words: Sequence[Word], span: Span, entity: int) -> Mention:
    head = head_word(words, span)
    kind = _kind(words, head)
    return Mention(
        span=span,
        head=head,
        entity=entity,
        kind=kind,
        text=" ".join(word.form.lower() for word in words[span.first : span.last + 1]),
        word=words[head].form.lower(),
        concord=concord_of(words[span.first : span.last + 1], words[head], kind),
    )


def _kind(words: Sequence[Word], head: int) -> str:
    """By the head word's tag; without one by a list of pronouns and by capital letters."""
    word = words[head]
    if word.upos is None and word.xpos is None:
        return _untagged_kind(words, head)
    if word.upos == "PRON" or (word.xpos or "").startswith(("PRP", "WP")):
        return "pronoun"
    return "proper" if word.upos == "PROPN" or (word.xpos or "").startswith("NNP") else "nominal"


def _untagged_kind(words: Sequence[Word], head: int) -> str:
    """A capital letter makes a name, unless it may be there because a sentence starts."""
    form = words[head].form
    if form.lower() in PRONOUNS:
        return "pronoun"
    if not form[:1].isupper():
        return "nominal"
    starts = head == 0 or words[head - 1].form in {".", "!", "?", '"', "“"}
    elsewhere = starts and any(word.form == form.lower() for word in words)
    return "nominal" if elsewhere else "proper"
