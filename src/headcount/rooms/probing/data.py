"""What a probe learns from: its settings, and a treebank as examples.

Clark et al. 2019, section 5: the maps between words of every head of the stack that reads a
sentence, with what stands for ROOT in front.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from math import prod
from pathlib import Path
from typing import Any, ClassVar, cast

import torch
from torch import Tensor

from headcount.errors import InputError, UsageError, check_convention
from headcount.models import Subject, enough_memory, refuse_nan
from headcount.records import Head
from headcount.rooms.probing.vectors import WordVectors
from headcount.surveys import ShardWork, run_shards
from headcount.text import (
    Batch,
    Corpus,
    EncodeReport,
    Ready,
    Rows,
    Sentence,
    Side,
    Words,
    encode,
    intake_of,
    sentences_of,
    word_maps,
)
from headcount.wiring import Needs, Sighting, tap

# --- How a probe is trained: by headcount's choice, or as Clark et al. did ----------------------

#: The probes, and the baselines that are probes of something less; the best is expected last. The
#: structural probe reads hidden states, and its trees have no direction.
STRUCTURAL = "structural"
KINDS = ("right-branching", "random-init", "distances", "attention", "words", STRUCTURAL)
#: Kinds that look words up.
WITH_WORDS = ("random-init", "distances", "words")
#: Kinds that look at maps.
WITH_MAPS = ("random-init", "attention", "words")


@dataclass(frozen=True)
class Settings:
    """Training with Adam: mini-batches in random order, the learning rate falling to 0 at the end.

    `paper` and `code` train as the authors: one sentence a step, in the order of the treebank,
    one epoch, a learning rate of 0.002. The loss is the mean over a batch's sentences of the sum
    over their words, so a rate means the same for every batch size.
    """

    convention: str = "headcount"
    #: How the rows of a word's pieces become one.
    rows: Rows = "mean"
    rate: float = 0.01
    epochs: int = 5
    #: Sentences a step.
    batch: int = 16
    #: Maps are kept in half precision, so that a treebank's fit in memory.
    dtype: torch.dtype = torch.float16

    @property
    def as_authors(self) -> bool:
        """Whether sentences come one at a time, in their order."""
        return self.convention != "headcount"

    @property
    def shifted(self) -> bool:
        """Whether words are shifted by one candidate, as in the authors' program."""
        return self.convention == "code"

    def to_dict(self) -> dict[str, Any]:
        """The settings as plain words and numbers."""
        return {**asdict(self), "dtype": str(self.dtype).removeprefix("torch.")}


def settings_for(convention: str = "headcount", kind: str = "attention", **given: Any) -> Settings:
    """The settings of a convention, with what was given in place of theirs.

    >>> settings_for("code").batch, settings_for("code", epochs=2).epochs
    (1, 2)
    """
    check_convention(convention)
    usual = Settings(rate=_RATES.get(kind, 0.01), epochs=10 if kind == STRUCTURAL else 5)
    if convention != "headcount" and kind != STRUCTURAL:  # which Clark et al. did not train
        rows: Rows = "first" if convention == "code" else "mean"
        usual = Settings(convention, rows, 0.002, 1, 1, torch.float32)
    settings = replace(usual, **{k: v for k, v in given.items() if v is not None})
    for name in ("rate", "epochs", "batch"):
        if getattr(settings, name) <= 0:
            raise UsageError(
                f"The probe's {name} is {getattr(settings, name)}; it must be above 0."
            )
    return settings


#: Learning rates that did best on the development part of UD English EWT, by kind.
_RATES = {"attention": 0.1, "words": 0.01, "random-init": 0.3, "distances": 0.01, STRUCTURAL: 0.003}


# --- Room for the maps of a whole treebank ------------------------------------------------------

#: Sentences of a shard: their maps are large.
_SHARD = 128
#: So many bytes are held in memory; more go to a file that the system pages in and out.
IN_MEMORY = 4 * 2**30


class Room:
    """Numbers of a known total, handed out in blocks of any shape.

    >>> room = Room(10, torch.float16)
    >>> room.block(2, 3).shape, room.block(4).shape
    (torch.Size([2, 3]), torch.Size([4]))
    """

    def __init__(self, size: int, dtype: torch.dtype, in_memory: int = IN_MEMORY) -> None:
        self._taken = 0
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        if size * dtype.itemsize <= in_memory:
            self._flat = torch.empty(size, dtype=dtype)
            return
        self._folder = tempfile.TemporaryDirectory(prefix="headcount-maps-")
        file = str(Path(self._folder.name, "maps"))
        self._flat = torch.from_file(file, shared=True, size=size, dtype=dtype)

    def block(self, *shape: int) -> Tensor:
        """The next block."""
        begin, self._taken = self._taken, self._taken + prod(shape)
        return self._flat[begin : self._taken].view(shape)


# --- The layout of a probe's maps ---------------------------------------------------------------
# Clark et al. 2019, section 5, read ROOT's score off the attention to [CLS] and [SEP]. What stands
# for them in other models:
#
# - start: the first special token in front of the words ([CLS], <s>, a language code);
# - end: the last special token behind them ([SEP], </s>);
# - where a model puts neither (GPT-2, SmolLM2), start is the first token of the text, to which
#   heads of such models attend when they do nothing.
#
# What is not there gives 0.

#: Places before the first word.
START, END, EXTRA = 0, 1, 2


def placed(side: Side) -> Words:
    """Start, end and the words of a side, as words; `word_maps` makes a probe's maps of them."""
    if side.words is None:
        raise InputError(
            "The words of this treebank cannot be found among the tokens: this tokenizer gives "
            "no offsets of its tokens; use its fast version."
        )
    start, end = _ends(side, side.words.pieces.any(1))
    pieces = torch.cat([start[:, None], end[:, None], side.words.pieces], dim=1)
    return Words(pieces, pieces.any(-1), side.words.sentences)


def _ends(side: Side, of_words: Tensor) -> tuple[Tensor, Tensor]:
    """Bool ``[batch, token]`` each: the tokens that stand for ROOT."""
    special = side.special & side.real
    before = ~(of_words.cumsum(1) > 0)
    behind = ~(of_words.flip(1).cumsum(1).flip(1) > 0)
    start = _first(special & before)
    end = _first((special & behind).flip(1)).flip(1)
    bare = ~(start.any(1) | end.any(1))
    return start | (_first(side.real) & bare[:, None]), end


def _first(where: Tensor) -> Tensor:
    """Only the first True of each row."""
    return where & (where.cumsum(1) == 1)


# --- A sentence as a probe sees it --------------------------------------------------------------

#: The head of a word that has none in the treebank.
UNKNOWN = -1


@dataclass(frozen=True)
class ProbeExample:
    """One sentence of n words; candidates are ROOT, 0, and the words from 1 to n."""

    #: Which item of the corpus.
    index: int
    forms: tuple[str, ...]
    #: Gold heads ``[n]``: 0 for the root, `UNKNOWN` where there is none.
    heads: Tensor
    #: Bool ``[n]``: counts for the UAS: it has a head and is no punctuation; the root does count.
    scored: Tensor
    #: Rows ``[n]`` of the table of vectors; 0 where a word has none.
    words: Tensor
    #: ``[head, 2 + n, 2 + n]``: start, end, then the words; None where no map is looked at.
    maps: Tensor | None = None

    def __len__(self) -> int:
        return len(self.forms)


# --- A treebank becomes examples ----------------------------------------------------------------


@dataclass(frozen=True)
class Gathered:
    """Examples in the order of the corpus, and what was left out."""

    name: str
    examples: list[ProbeExample]
    #: Sentences too long for the model.
    cut: int = 0
    #: Sentences of which no word has a head.
    bare: int = 0
    #: Sentences that the model broke on, a remark each.
    set_aside: Sequence[str] = ()
    #: The room of the maps lives as long as this.
    room: Room | None = field(default=None, repr=False)

    @property
    def remarks(self) -> list[str]:
        """What was left out, in words."""
        counts = {"too long for the model": self.cut, "without a head": self.bare}
        return [*self.set_aside] + [
            f"{count} sentences of {self.name} were {why} and left out."
            for why, count in counts.items()
            if count
        ]


def probed_stack(subject: Subject) -> str:
    """The stack whose heads are probed: the one that reads a sentence alone."""
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
    shards: ShardWork = ShardWork(),  # noqa: B008 - a frozen value
    title: str = "Reading",
) -> Gathered:
    """Read a corpus, in shards.

    Without `maps` the model is not run, without `trees` heads may be missing.
    """
    if corpus.paired:
        raise UsageError(
            f"{corpus.name} holds pairs, and a probe reads one sentence at a time; give a treebank."
        )
    if not corpus.annotated:
        raise InputError(
            f"{corpus.name} has no words and no trees, only text; give a treebank (.conllu)."
        )
    room = None
    if maps:
        read = (one for item in corpus for one in sentences_of(item) if one is not None)
        cells = sum((EXTRA + len(sentence.words or ())) ** 2 for sentence in read)
        room = Room(cells * len(probed_heads(subject)), settings.dtype)
    work = Found(room, vectors)
    _, aside = run_shards(
        subject,
        corpus,
        [cast("Any", work)],
        partial(_gather_part, settings=settings, maps=maps, size=batch_size),
        work=shards,
        settings={"rows": settings.rows, "dtype": str(settings.dtype), "maps": maps},
        title=title,
        most=_SHARD,
    )
    whole = [work.found[index] for index in sorted(work.found) if index not in work.cut]
    kept = [one for one in whole if not trees or bool((one.heads != UNKNOWN).any())]
    if not whole:
        raise InputError(
            f"No sentence of {corpus.name} fits into {subject.name} as a whole; give shorter ones."
        )
    if not kept:
        raise InputError(
            f"{corpus.name} has no trees: no word has a HEAD; give a treebank (.conllu)."
        )
    bare = len(whole) - len(kept)
    return Gathered(corpus.name, kept, len(work.cut), bare, aside, room)


@dataclass
class Found:
    """The examples of a corpus, or of a part: parts merge, and maps move into the room."""

    kept: ClassVar[tuple[type, ...]] = (ProbeExample,)
    room: Room | None = None
    vectors: WordVectors | None = None
    found: dict[int, ProbeExample] = field(default_factory=dict, init=False)
    #: The ids of each word's pieces, by which a model's own vectors are looked up.
    pieces: dict[int, list[list[int]]] = field(default_factory=dict, init=False)
    cut: set[int] = field(default_factory=set, init=False)

    def __deepcopy__(self, memo: object) -> Found:
        """Fresh, without room and vectors: only the whole has them."""
        return Found()

    def merge(self, other: Found) -> None:
        """Take in the examples of another part of the corpus."""
        self.cut |= other.cut
        self.pieces |= other.pieces
        for index, example in other.found.items():
            if self.room is not None and example.maps is not None:
                block = self.room.block(*example.maps.shape)
                example = replace(example, maps=block.copy_(example.maps))
            if self.vectors is not None:
                pairs = zip(example.forms, other.pieces[index], strict=True)
                rows = [self.vectors.row(form, ids) for form, ids in pairs]
                example = replace(example, words=torch.tensor(rows, dtype=torch.long))
            self.found[index] = example


def _gather_part(
    subject: Subject,
    part: Corpus | Ready,
    tallies: Sequence[Any],
    told: Callable[[int], None],
    *,
    settings: Settings,
    maps: bool,
    size: int,
) -> EncodeReport:
    """Run the model on a part of the corpus, and keep its examples."""
    assert isinstance(part, Corpus)  # a treebank
    stack = probed_stack(subject)
    encoded = encode(
        part,
        subject.tokenizer,
        stacks={stack},
        intake=intake_of(subject.model, subject.tokenizer),
        batch_size=size,
        words=True,
    )
    work = _Gathering(subject, settings, maps)
    with ExitStack() as stacked:
        stacked.enter_context(enough_memory(subject))
        needs = Needs(maps=True)
        watch = stacked.enter_context(tap(subject, needs, stacks=[stack])) if maps else None
        for batch in encoded:
            work.add(batch, stack)
            if watch is not None:
                watch(batch, receive=work.receive)
            told(len(work.found))
    (found,) = tallies
    found.found, found.pieces, found.cut = work.found, work.pieces, work.cut
    return encoded.report


class _Gathering:
    """Examples under way: sentences are added batch by batch, then their maps site by site."""

    def __init__(self, subject: Subject, settings: Settings, maps: bool) -> None:
        self.subject, self.settings, self.maps = subject, settings, maps
        self.found: dict[int, ProbeExample] = {}
        self.pieces: dict[int, list[list[int]]] = {}
        self.cut: set[int] = set()
        self._spots = {head: spot for spot, head in enumerate(probed_heads(subject))}
        self._rows: list[ProbeExample | None] = []
        self._layout: Words | None = None

    def add(self, batch: Batch, stack: str) -> None:
        """The sentences of a batch; their maps are still to come."""
        side = batch.query(stack)
        assert side is not None
        self._layout = placed(side)
        self._rows = []
        for row, (index, window) in enumerate(zip(batch.index, batch.window, strict=True)):
            sentence = self._layout.sentences[row]
            if window:
                self.cut.add(index)
            example = None
            if not window and sentence is not None:
                pieces = self._layout.pieces[row]
                example = self.found[index] = self._example(index, sentence, side.ids[row], pieces)
            self._rows.append(example)

    def receive(self, sighting: Sighting) -> None:
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

    def _example(self, index: int, sentence: Sentence, ids: Tensor, pieces: Tensor) -> ProbeExample:
        words = sentence.words or ()
        gold = [UNKNOWN if word.head is None else word.head for word in words]
        within = [head if 0 <= head <= len(words) else UNKNOWN for head in gold]
        heads = torch.tensor(within, dtype=torch.long)
        marks = [(word.deprel or "").split(":")[0] == "punct" for word in words]
        # Shorter sentences are padded.
        own = zip(words, pieces[EXTRA:], strict=False)
        self.pieces[index] = [ids[each].tolist() for _, each in own]
        size = EXTRA + len(words)
        return ProbeExample(
            index,
            tuple(word.form for word in words),
            heads,
            (heads != UNKNOWN) & ~torch.tensor(marks, dtype=torch.bool),
            torch.zeros(len(words), dtype=torch.long),
            torch.zeros(len(self._spots), size, size, dtype=self.settings.dtype)
            if self.maps
            else None,
        )
