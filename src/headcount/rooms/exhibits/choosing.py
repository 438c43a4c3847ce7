"""Exhibits: sentences are chosen from a corpus, and every head's map of them is kept."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
import pandas as pd

from headcount.errors import InputError
from headcount.models import Subject, refuse_nan
from headcount.rooms.coreference import coreferent, cut_passage
from headcount.rooms.exhibits.exhibits import SIDES, Exhibit, Text
from headcount.tasks import own_output
from headcount.text import (
    Batch,
    Corpus,
    EncodeReport,
    Item,
    Pair,
    Sentence,
    Side,
    Word,
    encode,
    intake_of,
    sentences_of,
    texts_of,
)
from headcount.wiring import Needs, Sighting, tap

# --- Which sentences of a corpus to look at -----------------------------------------------------

#: Words of a text that shows something and can be taken in at a glance.
_SHORTEST, _IDEAL, _MOST_WORDS = 6, 13, 24
#: So many items are looked at; more choice is no better.
_CANDIDATES = 5_000

#: Roles that a repeated word shows.
_REPEATED = {"duplicate", "induction", "retrieval"}


def chosen_items(
    corpus: Corpus, roles: pd.DataFrame | None = None, count: int = 3
) -> list[tuple[int, Item]]:
    """The N items that show most, with their places.

    Each next one shows as much as possible of what no earlier one shows: relations that a head
    was found to follow, repeated words, mentions of one entity.

    >>> from headcount.text import read_corpus
    >>> chosen_items(read_corpus(["No.", "The old kettle had been whistling for a minute."]), None)
    [(1, Sentence(text='The old kettle had been whistling for a minute.', ...))]
    """
    wanted = wanted_by(roles)
    items = list(enumerate(islice(corpus, _CANDIDATES)))
    left = [one for one in items if _fits(one[1])]
    left = left or [min(items, key=lambda one: _off_length(one[1]))]
    found: list[tuple[int, Item]] = []
    seen: set[str] = set()
    while left and len(found) < count:
        best = max(left, key=lambda one: _worth(one, wanted - seen))
        found.append(best)
        left.remove(best)
        seen |= shown_by(best[1])
    return found


def wanted_by(roles: pd.DataFrame | None) -> set[str]:
    """What sentences should show, going by the verdicts on heads.

    >>> sorted(wanted_by(pd.DataFrame({"role": ["syntactic", "coreference"],
    ...                                "label": ["nsubj dep->head", "antecedent"]})))
    ['mentions', 'nsubj']
    """
    if roles is None or not len(roles):
        return set()
    wanted = {label.split()[0] for label in roles.loc[roles["role"] == "syntactic", "label"]}
    if "coreference" in set(roles["role"]):
        wanted.add("mentions")
    if _REPEATED & set(roles["role"]):
        wanted.add("repeated")
    return wanted


def shown_by(item: Item) -> set[str]:
    """What a sentence shows: relations of its tree, repeated words, mentions of one entity."""
    sentence = sentences_of(item)[0]
    long = [word.strip(".,;:!?\"'") for word in texts_of(item)[0].lower().split() if len(word) > 3]
    shown = {"repeated"} if len(set(long)) < len(long) else set()
    if sentence is None:
        return shown
    shown |= {str(word.deprel) for word in sentence.words or () if word.deprel}
    shown |= {relation.partition(":")[0] for relation in shown}
    return shown | ({"mentions"} if any(len(one) > 1 for one in sentence.clusters) else set())


#: Words of a passage that shows mentions, and passages that are looked at.
_PASSAGE, _PASSAGES = 26, 400


def telling_passage(corpus: Corpus) -> tuple[int, Sentence] | None:
    """The few whole sentences in which most mentions have an antecedent, and the place of theirs.

    None where no mention has one so near.
    """
    best: tuple[int, int, int, Sentence] | None = None
    for place, item in enumerate(islice(corpus, _PASSAGES)):
        whole = sentences_of(item)[0]
        if whole is None or not whole.words:
            continue
        links = coreferent(whole)
        stops = [at + 1 for at, word in enumerate(whole.words) if word.form in (".", "!", "?")]
        for first in [0, *stops]:
            for end in stops:
                if not first < end <= first + _PASSAGE:
                    continue
                shown = len({m for _, m, other in links if first <= other and m < end})
                if shown and (best is None or (shown, first - end) > best[:2]):
                    best = shown, first - end, place, cut_passage(whole, first, end)
    return None if best is None else best[2:]


def _worth(one: tuple[int, Item], wanted: Collection[str]) -> tuple[int, int, int]:
    """The more the better: what it shows, a good length, an early place."""
    place, item = one
    return len(shown_by(item) & set(wanted)), -_off_length(item), -place


def _fits(item: Item) -> bool:
    return all(_SHORTEST <= len(text.split()) <= _MOST_WORDS for text in texts_of(item))


def _off_length(item: Item) -> int:
    """How many words the item is from a good length."""
    return abs(len(texts_of(item)[0].split()) - _IDEAL)


# --- One text through the model -----------------------------------------------------------------


def encode_one(
    subject: Subject, item: Item | str | tuple[str, str], **options: Any
) -> tuple[Batch, EncodeReport]:
    """One text or pair as the model takes it, and whether it was truncated for being too long."""
    usual = {"stacks": subject.anatomy.stacks, "long": "truncate"}
    intake = intake_of(subject.model, subject.tokenizer)
    encoded = encode([item], subject.tokenizer, intake=intake, **usual | options)
    for batch in encoded:
        return batch, encoded.report
    text = (
        item if isinstance(item, str) else item[0] if isinstance(item, tuple) else texts_of(item)[0]
    )
    raise InputError(f"The sentence {text!r} has no token for this tokenizer.")


# --- Make exhibits ------------------------------------------------------------------------------

#: Bytes of all maps together; further exhibits are left out.
BUDGET = 16_000_000
#: Tokens of a text; longer ones are cut.
_LONGEST = 64
#: A word, or a sign by itself.
_WORD = re.compile(r"\w+(?:['’-]\w+)*|[^\w\s]")


def exhibits_of(
    subject: Subject,
    corpus: Corpus,
    *,
    roles: pd.DataFrame | None = None,
    count: int = 3,
    own_text: bool = True,
    coref: Corpus | None = None,
    budget: int = BUDGET,
) -> tuple[list[Exhibit], list[str]]:
    """Some sentences of a corpus as exhibits, and what there is to note about them.

    `roles` is the frame of verdicts: sentences that show what they are about are preferred. Where
    heads find antecedents, a passage of `coref` shows some.
    """
    found: list[Exhibit] = []
    kind = "own" if own_text else "sample"
    chosen = chosen_items(corpus, roles, count)
    links = _links(subject, [item for _, item in chosen], corpus)
    for (place, item), own_links in zip(chosen, links, strict=True):
        name = f"{kind}-{place + 1:03d}"
        seen = look_at(subject, item)
        exhibit = replace(seen, id=name, own_text=own_text, links=own_links)
        if found and sum(one.bytes for one in found) + exhibit.bytes > budget:
            kept = f"{len(found)} of {count} exhibits were kept"
            return found, [f"{kept}: more would take over {budget / 1e6:.0f} MB."]
        found.append(exhibit)
    passage = telling_passage(coref) if coref and "mentions" in wanted_by(roles) else None
    if passage is not None:
        seen = look_at(subject, passage[1])
        found.append(replace(seen, id=f"{kind}-coref-{passage[0] + 1:03d}", own_text=own_text))
    if subject.kind == "dec" and roles is not None and _REPEATED & set(roles["role"]):
        found.append(_twice(subject, found[0], own_text))
    return found, []


#: Words of a sentence that is shown twice.
_FEW_WORDS = 8


def _twice(subject: Subject, first: Exhibit, own_text: bool) -> Exhibit:
    """The beginning of a sentence, said twice: what heads do that find a token again."""
    words = " ".join(first.title.split()[:_FEW_WORDS])
    seen = look_at(subject, f"{words} {words}")
    return replace(seen, id=f"{first.id}-twice", title=f"Said twice: {words}", own_text=own_text)


def look_at(subject: Subject, item: Item | str | tuple[str, str]) -> Exhibit:
    """Every head's map of one sentence or pair.

    An encoder-decoder that gets a single sentence translates it, and its maps are those of its own
    translation, teacher-forced.
    """
    if isinstance(item, str):
        item = Sentence(item)
    item = _with_words(_with_target(subject, Pair(*item) if isinstance(item, tuple) else item))
    intake = intake_of(subject.model, subject.tokenizer)
    limits = [limit for limit in (intake.source_limit, intake.target_limit) if limit]
    batch, _ = encode_one(subject, item, max_length=min([_LONGEST, *limits]))
    maps: dict[tuple[str, int], np.ndarray] = {}

    def receive(sighting: Sighting) -> None:
        assert sighting.maps is not None
        site = sighting.site
        maps[site.stack, site.layer] = sighting.maps[0].float().cpu().numpy()
        if np.isnan(maps[site.stack, site.layer]).any():
            refuse_nan(subject, f"{site.stack}.{site.layer}")

    with tap(subject, Needs(maps=True)) as watch:
        watch(batch, receive=receive)
    texts, sides = _texts(batch, subject.anatomy.stacks)
    names = dict(zip(texts, batch.sides.values(), strict=False))
    arcs = [(name, *arc) for name, side in names.items() for arc in _arcs(side)]
    return Exhibit("look", texts_of(item)[0], texts, sides, maps, arcs=arcs)


def _links(subject: Subject, items: Sequence[Item], corpus: Corpus) -> list[list[tuple[int, int]]]:
    """Which token of the source each of the target translates, by an aligner of the whole corpus.

    Places count tokens, special ones too. Empty where there are no pairs to learn from.
    """
    if "cross" not in subject.anatomy.stacks or not corpus.paired:
        return [[] for _ in items]
    from headcount.rooms.trials import Aligner, linked

    intake = intake_of(subject.model, subject.tokenizer)
    how: dict[str, Any] = {"intake": intake, "stacks": subject.anatomy.stacks, "long": "truncate"}
    own = list(encode(items, subject.tokenizer, max_length=_LONGEST, **how))
    rest = list(encode(list(islice(corpus, _CANDIDATES)), subject.tokenizer, **how))
    found: list[list[tuple[int, int]]] = [[] for _ in items]
    places = {
        number: [np.flatnonzero((side.real & ~side.special)[row].numpy()) for side in sides]
        for batch in own
        for sides in [(batch.sides["target"], batch.sides["source"])]
        for row, number in enumerate(batch.index)
    }
    for number, links in linked(own, rest, Aligner()).items():
        target, source = places[number]
        found[number] = [(int(target[a]), int(source[b])) for a, b in links]
    return found


def _with_target(subject: Subject, item: Item) -> Item:
    """For an encoder-decoder, a single sentence with the model's own translation."""
    if "cross" not in subject.anatomy.stacks or isinstance(item, Pair):
        return item
    found = own_output(subject, [item])
    if not found:
        raise InputError(f"{subject.name} makes nothing of the sentence '{item.text}'.")
    return found[0]


def _with_words(item: Item) -> Item:
    """The item with words in every text: those of its annotation, else those between spaces."""
    known = sentences_of(item)
    words = [one or _split(text) for one, text in zip(known, texts_of(item), strict=True)]
    if isinstance(item, Sentence):
        return words[0]
    return replace(item, annotated=(words[0], words[1]))


def _split(text: str) -> Sentence:
    """A text with its words found by their letters.

    >>> [word.form for word in _split("Don't go, Ines.").words]
    ["Don't", 'go', ',', 'Ines', '.']
    """
    found = _WORD.finditer(text)
    words = tuple(Word(one[0], start=one.start(), end=one.end()) for one in found)
    return Sentence(text, words)


def _texts(
    batch: Batch, stacks: Sequence[str]
) -> tuple[dict[str, Text], dict[str, tuple[str, str]]]:
    """The texts by name, and those of queries and keys of a stack; a single text is "src"."""
    sides = list(batch.sides.values())
    if len(sides) == 1:
        return {"src": _text(sides[0])}, dict.fromkeys(stacks, ("src", "src"))
    source, target = batch.sides["source"], batch.sides["target"]
    return {"src": _text(source), "tgt": _text(target)}, {one: SIDES[one] for one in stacks}


def _text(side: Side) -> Text:
    words, word_texts = _words(side)
    return Text(list(side.tokens[0]), [bool(x) for x in side.special[0]], words, word_texts)


#: What the name of an arc from a mention to its antecedent begins with; the mention's kind follows.
COREF = "coref:"


def _arcs(side: Side) -> list[tuple[str, int, int]]:
    """Arcs between words of `_words`: relation, dependent, head; kind, mention, antecedent."""
    sentence = None if side.words is None else side.words.sentences[0]
    if side.words is None or sentence is None:
        return []
    groups = _joined(side.words.pieces[0].cpu().numpy())
    number = {word: place for place, group in enumerate(groups) for word in group}
    trees = [
        (str(word.deprel), place, word.head - 1)
        for place, word in enumerate(sentence.words or ())
        if word.head and word.deprel
    ]
    mentions = [(f"{COREF}{kind}", word, head) for kind, word, head in coreferent(sentence)]
    return [
        (name, number[word], number[head])
        for name, word, head in [*trees, *mentions]
        if word in number and head in number and number[word] != number[head]
    ]


def _words(side: Side) -> tuple[list[int] | None, list[str]]:
    """The word of each token; words that share a token (German *zum*) are one."""
    if side.words is None or side.words.sentences[0] is None:
        return None, []
    pieces = side.words.pieces[0].cpu().numpy()
    spans = [(word.start, word.end) for word in side.words.sentences[0].words or ()]
    groups = _joined(pieces)
    numbers = np.full(pieces.shape[1], -1)
    texts: list[str] = []
    for group in groups:
        numbers[pieces[group].any(0)] = len(texts)
        texts.append(_written(side.words.sentences[0], [spans[word] for word in group]))
    return numbers.tolist(), texts


def _joined(pieces: np.ndarray) -> list[list[int]]:
    """Words that have tokens, in order, those with a token in common together."""
    groups: list[list[int]] = []
    for word, own in enumerate(pieces):
        if not own.any():
            continue
        if groups and (own & pieces[groups[-1]].any(0)).any():
            groups[-1].append(word)
        else:
            groups.append([word])
    return groups


def _written(sentence: Sentence, spans: Sequence[tuple[int | None, int | None]]) -> str:
    starts = [start for start, _ in spans if start is not None]
    ends = [end for _, end in spans if end is not None]
    return sentence.text[min(starts) : max(ends)]
