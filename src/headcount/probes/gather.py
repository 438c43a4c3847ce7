"""A treebank becomes examples: the model reads every sentence once, and the maps are kept."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

import torch
from torch import Tensor

from headcount.errors import InputError, UsageError
from headcount.heads import Head
from headcount.models.finite import refuse_nan
from headcount.models.memory import enough_memory
from headcount.probes.example import UNKNOWN, Example, gold_heads, is_scored
from headcount.probes.layout import EXTRA, placed
from headcount.probes.room import Room
from headcount.probes.settings import Settings
from headcount.probes.vectors import WordVectors
from headcount.progress import Progress
from headcount.subject import Subject
from headcount.text import Batch, Corpus, Sentence, encode, intake_of, sentences_of
from headcount.text.words import Words, word_maps
from headcount.wiring import Needs, Sighting, tap

__all__ = ["Gathered", "gather", "probed_heads", "probed_stack"]


@dataclass(frozen=True)
class Gathered:
    """Examples in the order of the corpus, and what was left out."""

    name: str
    hash: str
    examples: list[Example]
    #: Sentences too long for the model.
    cut: int = 0
    #: Sentences of which no word has a head.
    bare: int = 0
    #: The room of the maps lives as long as this.
    room: Room | None = field(default=None, repr=False)

    @property
    def words(self) -> int:
        """All words."""
        return sum(len(example) for example in self.examples)

    @property
    def known(self) -> int:
        """Words that have a vector."""
        return sum(int((example.words > 0).sum()) for example in self.examples)

    @property
    def remarks(self) -> list[str]:
        """What was left out, in words."""
        told = {"too long for the model": self.cut, "without a head": self.bare}
        return [
            f"{count} sentences of {self.name} were {why} and left out."
            for why, count in told.items()
            if count
        ]


def probed_stack(subject: Subject) -> str:
    """The stack whose heads are probed: the one that reads a sentence by itself."""
    return "enc" if "enc" in subject.anatomy.stacks else "dec"


def probed_heads(subject: Subject) -> list[Head]:
    """The heads of that stack, in the order of the maps."""
    stack = probed_stack(subject)
    return [head for head in subject.heads if head.stack == stack]


def gather(
    subject: Subject,
    corpus: Corpus,
    settings: Settings,
    *,
    vectors: WordVectors | None = None,
    maps: bool = True,
    trees: bool = True,
    batch_size: int = 16,
    progress: Progress | None = None,
) -> Gathered:
    """Read a corpus; without `maps` the model is not run, without `trees` heads may be missing."""
    _check(corpus)
    stack = probed_stack(subject)
    encoded = encode(
        corpus,
        subject.tokenizer,
        stacks={stack},
        intake=intake_of(subject.model, subject.tokenizer),
        batch_size=batch_size,
        words=True,
    )
    work = _Gathering(
        subject, settings, vectors, _room(subject, corpus, settings) if maps else None
    )
    with ExitStack() as open_:
        open_.enter_context(enough_memory(subject))
        watch = (
            open_.enter_context(tap(subject, Needs(maps=True), stacks=[stack])) if maps else None
        )
        for batch in encoded:
            work.add(batch, stack)
            if watch is not None:
                watch(batch, receive=work.see)
            if progress is not None:
                progress(len(work.found), len(corpus))
    return work.finish(corpus, trees)


class _Gathering:
    """Examples under way."""

    def __init__(
        self,
        subject: Subject,
        settings: Settings,
        vectors: WordVectors | None,
        room: Room | None,
    ) -> None:
        self.subject, self.settings, self.vectors, self.room = subject, settings, vectors, room
        self.found: dict[int, Example] = {}
        self.cut: set[int] = set()
        self._spots = {head: spot for spot, head in enumerate(probed_heads(subject))}
        self._rows: list[Example | None] = []
        self._layout: Words | None = None

    def add(self, batch: Batch, stack: str) -> None:
        """The sentences of a batch; their maps are still to be seen."""
        side = batch.query(stack)
        assert side is not None
        self._layout = placed(side)
        self._rows = []
        for row, (index, window) in enumerate(zip(batch.index, batch.window, strict=True)):
            sentence = self._layout.sentences[row]
            if window:
                self.cut.add(index)
            if window or sentence is None:
                self._rows.append(None)
                continue
            example = self._example(index, sentence, side.ids[row], self._layout.pieces[row])
            self.found[index] = example
            self._rows.append(example)

    def see(self, sighting: Sighting) -> None:
        """The maps of one site."""
        assert sighting.maps is not None
        assert self._layout is not None
        words = self._layout.to(sighting.maps.device)
        maps = word_maps(sighting.maps, words, words, rows=self.settings.rows)
        if bool(torch.isnan(maps.sum())):
            refuse_nan(self.subject, f"{sighting.site.stack}.{sighting.site.layer}")
        spots = [self._spots[head] for head in sighting.site.names]
        kept = maps.to("cpu", self.settings.dtype)
        for row, example in zip(kept, self._rows, strict=True):
            if example is not None and example.maps is not None:
                size = EXTRA + len(example)
                example.maps[spots] = row[:, :size, :size]

    def finish(self, corpus: Corpus, trees: bool) -> Gathered:
        """What there is to train on."""
        whole = [self.found[index] for index in sorted(self.found) if index not in self.cut]
        kept = [one for one in whole if not trees or bool((one.heads != UNKNOWN).any())]
        if not whole:
            raise InputError(
                f"No sentence of {corpus.name} fits into {self.subject.name} as a whole; give "
                "shorter ones."
            )
        if not kept:
            raise InputError(
                f"{corpus.name} has no trees: no word has a HEAD; give a treebank (.conllu)."
            )
        bare = len(whole) - len(kept)
        return Gathered(corpus.name, corpus.hash, kept, len(self.cut), bare, self.room)

    def _example(self, index: int, sentence: Sentence, ids: Tensor, pieces: Tensor) -> Example:
        words = sentence.words or ()
        heads = gold_heads(sentence)
        rows = [0] * len(words)
        if self.vectors is not None:
            own = pieces[EXTRA:]
            rows = [
                self.vectors.row(word.form, ids[own[place]].tolist())
                for place, word in enumerate(words)
            ]
        size = EXTRA + len(words)
        return Example(
            index,
            tuple(word.form for word in words),
            heads,
            is_scored(words, heads),
            torch.tensor(rows, dtype=torch.long),
            None if self.room is None else self.room.block(len(self._spots), size, size),
        )


def _room(subject: Subject, corpus: Corpus, settings: Settings) -> Room:
    """As much as the maps of all sentences take."""
    cells = sum((EXTRA + size) ** 2 for size in _sizes(corpus))
    return Room(cells * len(probed_heads(subject)), settings.dtype)


def _sizes(corpus: Corpus) -> Sequence[int]:
    found = (sentence for item in corpus for sentence in sentences_of(item))
    return [len(sentence.words or ()) for sentence in found if sentence is not None]


def _check(corpus: Corpus) -> None:
    if corpus.paired:
        raise UsageError(
            f"{corpus.name} holds pairs, and a probe reads one sentence at a time; give a treebank."
        )
    if not corpus.annotated:
        raise InputError(
            f"{corpus.name} has no words and no trees, only text; give a treebank (.conllu)."
        )
