"""Attention along links: subjects and verbs, nouns and pronouns, predicates and their arguments.

Kovaleva et al., EMNLP 2019, section 4.3 (token to token) and section 4.1 (frame elements). Their
notebook takes subjects whose head is a verb, and pairs the sorted positions of subjects and verbs;
noun and pronoun are in the text only.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import ClassVar, Literal, NamedTuple

import numpy as np
import pandas as pd
from torch import Tensor

from headcount.errors import check_convention
from headcount.records import Column
from headcount.rooms.words import (
    NOUN,
    PRONOUN,
    VERB,
    MeansTally,
    Pairs,
    WordPairs,
    chosen_texts,
    compact_words,
    resample_units,
    word_pairs,
    word_tiles,
)
from headcount.surveys import BatchCache, TallyPlan
from headcount.text import Argument, Predicate, Sentence, Span, Words
from headcount.wiring import Needs, Sighting

# --- The shared body of tallies that score links between words ----------------------------------

#: All sources with all targets; only those that belong together; or in order, as far as both go.
Pairing = Literal["all", "linked", "zip"]

_CROSS = "queries and keys are different texts"


class Ends(NamedTuple):
    """The words that a link runs from and to, and which of them belong together."""

    sources: tuple[int, ...] = ()
    targets: tuple[int, ...] = ()
    linked: tuple[tuple[int, int], ...] = ()


class _BatchLinks(NamedTuple):
    pairs: WordPairs
    chosen: Tensor
    #: The words to make maps of, or None for maps between tokens.
    words: Words | None


@dataclass
class LinkTally(MeansTally, ABC):
    """The mean over texts of the largest attention along a link, next to the same pairs moved.

    - `headcount`: between words (columns added up, rows averaged), all pairs.
    - `paper`: between pieces, all pairs.
    - `code`: between pieces, sources and targets paired in order and cut to the shorter list.
    """

    convention: str = "headcount"
    seed: int = 0
    _batches: BatchCache[_BatchLinks] = field(
        default_factory=BatchCache, init=False, repr=False, compare=False
    )

    needs = Needs(tiles=True)
    #: The name of the finer table.
    detail: ClassVar[str]
    links: ClassVar[tuple[str, ...]]
    #: The column of a link, its ends left open in the meaning.
    about: ClassVar[Column]
    #: Which pairs count, but for the authors' notebook.
    usual: ClassVar[Pairing] = "all"

    def __post_init__(self) -> None:
        """Refuse settings that mean nothing."""
        check_convention(self.convention)

    @abstractmethod
    def ends(self, sentence: Sentence) -> Sequence[Ends]:
        """The ends of each link in a sentence, in the order of `links`; empty where it has none."""

    def column_of(self) -> dict[str, Column]:
        """The columns of all links."""
        found = {}
        for link in self.links:
            source, _, target = link.partition("->")
            meaning = self.about.meaning.format(source=source, target=target)
            name, title = f"{source}_to_{target}", f"{source.capitalize()} to {target}"
            found[link] = replace(self.about, name=name, title=title, meaning=meaning)
        return found

    def update(self, sighting: Sighting) -> None:
        """Add each text's figures; nothing where the words are not known."""
        site, words = sighting.site, sighting.queries.words
        if words is None or not sighting.readable or site.stack == "cross":
            self._skipped[site] = _CROSS if site.stack == "cross" else self.none
            return
        found = self._batches.get(
            sighting.batch,
            (site.stack, site.causal),
            lambda: self._batch_links(words, sighting.batch.index, site.causal),
        )
        if found.words is not None:
            tiles = word_tiles(sighting, found.words)
        else:
            places = ((slice(int(own[0]), int(own[-1]) + 1), own) for own in sighting.tiles())
            tiles = ((some, sighting.rows_at(own)) for some, own in places)
        self.means.add(site, self.links, found.pairs.compared(tiles), found.chosen)

    def details(self) -> dict[str, pd.DataFrame]:
        """A row for each head, link and split; `outlier` marks heads above the 99th percentile."""
        if not any(self.means.items(site) for site in self.means):
            return {}
        frame = self.means.frame("link")
        bar = frame.groupby(["link", "split"])["value"].transform(lambda v: np.percentile(v, 99))
        return {self.detail: frame.assign(outlier=frame["value"] > bar)}

    def _batch_links(self, words: Words, index: Sequence[int], causal: bool) -> _BatchLinks:
        level = compact_words(words) if self.convention == "headcount" else None
        places = _word_places(words) if level is not None else _piece_places(words)
        pairs = [
            [
                # Both places differ; the second is in sight where attention looks back only.
                [(a, b) for a, b in self._pairs(ends, at) if a != b and (b < a or not causal)]
                for ends in (self.ends(sentence) if sentence else [Ends()] * len(self.links))
            ]
            for sentence, at in zip(words.sentences, places, strict=True)
        ]
        every = [[place for each in at.values() for place in each] for at in places]
        bounds = [(min(each, default=0), max(each, default=-1)) for each in every]
        device = words.there.device
        chosen = chosen_texts(resample_units(words, index), device, self.seed)
        return _BatchLinks(word_pairs(pairs, bounds, device), chosen, level)

    def _pairs(self, ends: Ends, at: dict[int, list[int]]) -> Pairs:
        """The pairs of places of one link; words that are not there have none."""
        pairing = "zip" if self.convention == "code" else self.usual
        if pairing == "linked":
            linked = [product(at.get(one, ()), at.get(other, ())) for one, other in ends.linked]
            return [*dict.fromkeys(pair for pairs in linked for pair in pairs)]
        sources, targets = (
            sorted({place for word in words for place in at.get(word, ())})
            for words in (ends.sources, ends.targets)
        )
        if pairing == "zip":
            return [*zip(sources, targets, strict=False)]
        return [*product(sources, targets)]


def _word_places(words: Words) -> list[dict[int, list[int]]]:
    """Where `compact_words` puts each word."""
    return [
        {int(word): [place] for place, word in enumerate(np.flatnonzero(there))}
        for there in words.there.cpu().numpy()
    ]


def _piece_places(words: Words) -> list[dict[int, list[int]]]:
    """The tokens of each word."""
    return [
        {int(word): np.flatnonzero(pieces[word]).tolist() for word in np.flatnonzero(pieces.any(1))}
        for pieces in words.pieces.cpu().numpy()
    ]


# --- Attention between subjects and verbs -------------------------------------------------------

LINKS = ("subject->verb", "verb->subject", "noun->pronoun", "pronoun->noun")

_SUBJECTS = ("nsubj", "nsubjpass")


@dataclass
class Links(LinkTally):
    """The largest attention along each link of a sentence, averaged over sentences that have it."""

    detail = "links"
    links = LINKS
    none = "no sentence has both ends of such a link"
    about = Column(
        "link",
        meaning="Largest attention from a {source} to a {target} of its sentence, on average.",
        paper="Kovaleva et al. 2019, section 4.3",
        range=(0, 1),
        group="What it looks at",
    )

    def ends(self, sentence: Sentence) -> Sequence[Ends]:
        """Subjects with their verbs, nouns with pronouns, and the other way round."""
        # Subjects with the verbs they hang from.
        words = sentence.words or ()
        pairs = [
            (place, word.head - 1)
            for place, word in enumerate(words)
            if (word.deprel or "").partition(":")[0] in _SUBJECTS
            and word.head is not None
            and 0 < word.head <= len(words)
            and VERB.has(words[word.head - 1])
        ]
        nouns, pronouns = NOUN.places(sentence), PRONOUN.places(sentence)
        subjects = Ends(tuple(s for s, _ in pairs), tuple(v for _, v in pairs), tuple(pairs))
        every = tuple((noun, pronoun) for noun in nouns for pronoun in pronouns)
        named = Ends(tuple(nouns), tuple(pronouns), every)
        return [subjects, _turned(subjects), named, _turned(named)]


def _turned(ends: Ends) -> Ends:
    return Ends(ends.targets, ends.sources, tuple((b, a) for a, b in ends.linked))


# --- Which heads link a predicate and its arguments across a distance ---------------------------
# Kovaleva et al., EMNLP 2019, section 4.1: FrameNet examples of at most 12 tokens, core elements of
# at most 3 tokens and more than 2 away from the target; the largest attention over the pairs of a
# link, averaged over sentences. PropBank's ARG0 to ARG5 take the place of core elements here.

ARGUMENT_LINKS = ("argument->predicate", "predicate->argument")

CORE = frozenset(f"ARG{number}" for number in range(6))


@dataclass(frozen=True)
class Frames:
    """Which sentences and arguments count.

    A FrameNet example marks one target and a few elements, PropBank every predicate and all its
    arguments: there almost no sentence has its every argument far away, so each core argument is
    judged for itself, and any number of predicates will do.
    """

    #: The most words of a sentence, and of an argument.
    words: int | None = 12
    argument_words: int | None = 3
    #: An argument this near, in words, is left out: a head that looks around would find it.
    near: int = 2
    core: frozenset[str] = CORE

    def links(self, sentence: Sentence) -> list[tuple[int, Span]]:
        """Predicates with the spans of their arguments, of those that pass."""
        count = len(sentence.words or ())
        if self.words is not None and count > self.words:
            return []
        return [
            (predicate.word, argument.span)
            for predicate in sentence.predicates
            if 0 <= predicate.word < count
            for argument in predicate.arguments
            if self._passes(predicate, argument, count)
        ]

    def _passes(self, predicate: Predicate, argument: Argument, count: int) -> bool:
        first, last = argument.span
        away = max(first - predicate.word, predicate.word - last, 0)
        return (
            0 <= first <= last < count
            and argument.label in self.core
            and (self.argument_words is None or last - first < self.argument_words)
            and away > self.near
        )


@dataclass
class ArgumentTally(LinkTally):
    """The largest attention between predicates and their arguments, averaged over sentences.

    Pairs of the same link count, under `code` those of the sorted positions.
    """

    frames: Frames = field(default_factory=Frames)

    detail = "arguments"
    links = ARGUMENT_LINKS
    usual = "linked"
    none = "no sentence has a predicate with an argument that is asked about"
    about = Column(
        "link",
        meaning="Largest attention from a distant {source} to its {target}, on average.",
        paper="Kovaleva et al. 2019, section 4.1",
        range=(0, 1),
        direction="higher",
        group="What it tracks",
    )

    def ends(self, sentence: Sentence) -> Sequence[Ends]:
        """The words of arguments and their predicates."""
        linked = tuple(
            (place, predicate)
            for predicate, span in self.frames.links(sentence)
            for place in range(span.first, span.last + 1)
        )
        sources, targets = (tuple(dict.fromkeys(pair[end] for pair in linked)) for end in (0, 1))
        arguments = Ends(sources, targets, linked)
        return [arguments, _turned(arguments)]


#: Both among the tallies of the registry.
LINKS_PLAN = TallyPlan(lambda subject, corpus, options: Links(options.convention), "treebank")
ARGUMENTS_PLAN = TallyPlan(
    lambda subject, corpus, options: ArgumentTally(options.convention), "arguments"
)
