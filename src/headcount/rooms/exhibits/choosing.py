"""Exhibits: sentences are chosen from a corpus, and every head's map of them is kept."""

from __future__ import annotations

import re
from collections.abc import Sequence
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
    wanted, seen = wanted_by(roles), set[str]()
    items = [
        (place, item, [len(text.split()) for text in texts_of(item)])
        for place, item in enumerate(islice(corpus, _CANDIDATES))
    ]
    left = [one for one in items if min(one[2]) >= _SHORTEST and max(one[2]) <= _MOST_WORDS]
    left = left or [min(items, key=lambda one: abs(one[2][0] - _IDEAL))]
    found: list[tuple[int, Item]] = []
    while left and len(found) < count:
        # The more it shows, a good length, an early place.
        best = max(
            left,
            key=lambda one: (
                len(shown_by(one[1]) & wanted - seen),
                -abs(one[2][0] - _IDEAL),
                -one[0],
            ),
        )
        left.remove(best)
        found.append(best[:2])
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
#: Words of a sentence that is shown twice.
_FEW_WORDS = 8
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
        # The beginning of a sentence, said twice: what heads do that find a token again.
        words = " ".join(found[0].title.split()[:_FEW_WORDS])
        seen, name = look_at(subject, f"{words} {words}"), f"{found[0].id}-twice"
        found.append(replace(seen, id=name, title=f"Said twice: {words}", own_text=own_text))
    return found, []


def look_at(subject: Subject, item: Item | str | tuple[str, str]) -> Exhibit:
    """Every head's map of one sentence or pair.

    An encoder-decoder that gets a single sentence translates it, and its maps are those of its own
    translation, teacher-forced.
    """
    if not isinstance(item, Sentence | Pair):
        item = Sentence(item) if isinstance(item, str) else Pair(*item)
    item = _with_words(subject, item)
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
    stacks, names = subject.anatomy.stacks, {"src": next(iter(batch.sides.values()))}
    sides = dict.fromkeys(stacks, ("src", "src"))  # a single text is "src"
    if len(batch.sides) > 1:
        names = {"src": batch.sides["source"], "tgt": batch.sides["target"]}
        sides = {stack: SIDES[stack] for stack in stacks}
    texts = {name: _text(side) for name, side in names.items()}
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


def _with_words(subject: Subject, item: Item) -> Item:
    """The item with words in every text: those of its annotation, else those between spaces.

    For an encoder-decoder a single sentence gets the model's own translation.
    """
    if isinstance(item, Sentence) and "cross" in subject.anatomy.stacks:
        told = own_output(subject, [item])
        if not told:
            raise InputError(f"{subject.name} makes nothing of the sentence '{item.text}'.")
        item = told[0]
    known = sentences_of(item)
    words = [one or _split(text) for one, text in zip(known, texts_of(item), strict=True)]
    return words[0] if isinstance(item, Sentence) else replace(item, annotated=(words[0], words[1]))


def _split(text: str) -> Sentence:
    """A text with its words found by their letters.

    >>> [word.form for word in _split("Don't go, Ines.").words]
    ["Don't", 'go', ',', 'Ines', '.']
    """
    found = _WORD.finditer(text)
    words = tuple(Word(one[0], start=one.start(), end=one.end()) for one in found)
    return Sentence(text, words)


#: What the name of an arc from a mention to its antecedent begins with; the mention's kind follows.
COREF = "coref:"


def _arcs(side: Side) -> list[tuple[str, int, int]]:
    """Arcs between words of `_text`: relation, dependent, head; kind, mention, antecedent."""
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


def _text(side: Side) -> Text:
    """The tokens and their words; words that share a token (German *zum*) are one."""
    tokens, special = list(side.tokens[0]), [bool(x) for x in side.special[0]]
    sentence = None if side.words is None else side.words.sentences[0]
    if side.words is None or sentence is None:
        return Text(tokens, special)
    pieces, words = side.words.pieces[0].cpu().numpy(), sentence.words or ()
    numbers, texts = np.full(pieces.shape[1], -1), list[str]()
    for group in _joined(pieces):
        numbers[pieces[group].any(0)] = len(texts)
        ends = [end for word in group for end in (words[word].start, words[word].end)]
        placed = [end for end in ends if end is not None]
        texts.append(sentence.text[min(placed) : max(placed)])
    return Text(tokens, special, numbers.tolist(), texts)


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
