"""What a probe learns from: its settings, and a treebank as examples.

Clark et al. 2019, section 5: the maps between words of every head of the stack that reads a
sentence, with what stands for ROOT in front.

Vectors of words, frozen: from a file, or the model's own input embeddings.
"""

from __future__ import annotations

import re
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from math import prod
from pathlib import Path
from typing import Any, ClassVar, Protocol, cast

import numpy as np
import torch
from torch import Tensor

from headcount.errors import InputError, UsageError, check_convention
from headcount.models import Subject, refuse_nan
from headcount.records import Head
from headcount.rooms.words import word_maps
from headcount.surveys import PassOptions, Reading, ShardWork, batches_of, run_part, run_shards
from headcount.text import (
    Batch,
    Corpus,
    EncodeReport,
    Ready,
    Rows,
    Sentence,
    Side,
    TextFile,
    Words,
    is_number,
    sentences_of,
    text_file,
)
from headcount.wiring import Needs, Sighting

# --- Vectors of words, frozen -------------------------------------------------------------------

#: The word that stands for the model's own embeddings.
OWN = "own"


class WordVectors(Protocol):
    """Words to rows of a table; row 0 is zero and stands for every word that has no vector."""

    name: str

    def row(self, form: str, pieces: Sequence[int]) -> int:
        """The row of a word, given its form and the ids of its pieces."""

    def table(self) -> Tensor:
        """``[row, width]`` of all words that were asked for."""


class FileVectors:
    """Vectors by the lower-cased form of a word, as Clark et al. look GloVe up.

    >>> vectors = FileVectors(["the", "cat"], np.ones((2, 3)), "mine")
    >>> vectors.row("The", []), vectors.row("dog", []), tuple(vectors.table().shape)
    (1, 0, (3, 3))
    """

    def __init__(self, words: Sequence[str], values: np.ndarray, name: str) -> None:
        self.name, self.words, self.values = name, list(words), values
        self._rows: dict[str, int] = {}
        for number, word in enumerate(self.words, start=1):
            self._rows.setdefault(word.lower(), number)  # files begin with the frequent ones

    def row(self, form: str, pieces: Sequence[int]) -> int:
        """The row of a word; 0 where the file does not have it."""
        return self._rows.get(form.lower(), 0)

    def table(self) -> Tensor:
        """All vectors behind a row of zeros."""
        values = torch.from_numpy(np.asarray(self.values, dtype=np.float32))
        return torch.cat([torch.zeros(1, values.shape[1]), values])


class OwnVectors:
    """The mean of the input embeddings of a word's pieces.

    They are divided by the root mean square of all embeddings, so that one size of step suits
    every model.
    """

    name = OWN

    def __init__(self, subject: Subject) -> None:
        weight = subject.inner.get_input_embeddings().weight.detach().float().cpu()
        self._weight = weight / weight.square().mean().sqrt()
        self._rows: dict[tuple[int, ...], int] = {}

    def row(self, form: str, pieces: Sequence[int]) -> int:
        """The row of these pieces, which is made where they are new."""
        key = tuple(pieces)
        return self._rows.setdefault(key, len(self._rows) + 1) if key else 0

    def table(self) -> Tensor:
        """Zeros, then a row for all pieces seen so far, in the order in which they came."""
        rows = [self._weight[list(key)].mean(0) for key in self._rows]
        return torch.stack([torch.zeros(self._weight.shape[1]), *rows])


# --- Read vectors of words: text as GloVe and word2vec write it, or .npz ------------------------

_LIKE = (
    "a word and its numbers on each line (GloVe, word2vec as text), or .npz with words and vectors"
)

#: A packed file may come to so many bytes, or to a hundred times its size.
_SMALL = 256 << 20
#: Other kinds of space may stand within a word, or be one: GloVe and fastText have such.
_BETWEEN = re.compile(r"[ \t]+")


def read_vectors(path: str | Path) -> FileVectors:
    """Vectors from a file: text, maybe packed, or .npz.

    A line has a word and its numbers with spaces between; a first line of two numbers, as word2vec
    writes it, is passed over. An .npz has `words` (an array of words, or one text with a word a
    line) and `vectors` ``[word, width]``.
    """
    path = Path(path)
    file = text_file(path)
    words, values = _from_npz(path) if path.suffix == ".npz" else _from_text(file)
    if not len(words):
        raise InputError(f"{path} has no vector; give {_LIKE}.")
    if not np.isfinite(values).all():
        raise InputError(f"{path} has vectors that are not numbers; give {_LIKE}.")
    return FileVectors(words, values, path.name)


def _from_text(file: TextFile) -> tuple[list[str], np.ndarray]:
    words: list[str] = []
    rows: list[np.ndarray] = []
    first = 0
    for number, line in file.lines():
        fields = _BETWEEN.split(line.strip(" \t"))
        if fields == [""] or (number == 1 and len(fields) == 2 and all(map(str.isdigit, fields))):
            continue  # blank, or word2vec's header
        # Some words of GloVe have spaces in them: the word ends before the first number.
        size = 1 + next((at for at, text in enumerate(fields[1:]) if is_number(text)), len(fields))
        try:
            numbers = np.array(fields[size:], dtype=np.float32)
        except ValueError:
            numbers = np.zeros(0, dtype=np.float32)
        if not len(numbers):
            raise InputError(
                f"Line {number} of {file.name} is not a word with numbers: '{line[:40]}'; give "
                f"{_LIKE}."
            )
        first = first or number
        if rows and len(numbers) != len(rows[0]):
            raise InputError(
                f"{file.name} has {len(rows[0])} numbers on line {first} and {len(numbers)} on "
                f"line {number}; all vectors must have the same width."
            )
        words.append(" ".join(fields[:size]))
        rows.append(numbers)
    return words, np.stack(rows) if rows else np.zeros((0, 0))


def _from_npz(path: Path) -> tuple[list[str], np.ndarray]:
    try:
        with zipfile.ZipFile(path) as packed:
            size = sum(member.file_size for member in packed.infolist())
        if size > max(_SMALL, 100 * path.stat().st_size):
            raise ValueError(f"it comes to {size >> 20:,} MiB, over a hundred times its size")
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: np.asarray(file[name]) for name in file.files}
    except Exception as error:  # zipfile, zlib and numpy raise a dozen kinds for damaged bytes
        raise InputError(f"{path} cannot be read as .npz ({error}); give {_LIKE}.") from error
    if not {"words", "vectors"} <= arrays.keys():
        has = ", ".join(list(arrays)[:3]) or "nothing"
        more = f" and {len(arrays) - 3:,} more" if len(arrays) > 3 else ""
        raise InputError(f"{path} holds {has}{more}; it must hold words and vectors.")
    words, values = arrays["words"], arrays["vectors"]
    listed = str(words).split("\n") if words.ndim == 0 else [str(word) for word in words]
    if values.ndim != 2 or len(values) != len(listed):
        raise InputError(
            f"{path} has {len(listed)} words and vectors of the shape {values.shape}; it must have "
            "one vector of the same width for each word."
        )
    return listed, values


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
        return {**asdict(self), "dtype": self.precision}

    @property
    def precision(self) -> str:
        """The type of the maps by name."""
        return str(self.dtype).removeprefix("torch.")


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
    work = ReadExamples(settings.rows, settings.precision, tuple(probed_heads(subject)), maps)
    work.room, work.vectors = room, vectors
    inputs = PassOptions((probed_stack(subject),), batch_size)
    _, aside = run_shards(
        subject,
        corpus,
        [cast("Any", work)],
        partial(_read_part, inputs=inputs),
        work=shards,
        settings={"rows": settings.rows},
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


def _read_part(
    subject: Subject,
    part: Corpus | Ready,
    tallies: Sequence[Any],
    told: Callable[[int], None],
    *,
    inputs: PassOptions,
) -> EncodeReport:
    """Read a part of the corpus; the model is run where maps are looked at."""
    (work,) = tallies
    if not work.maps:
        batches = batches_of(subject, part, inputs)
        for batch in batches:
            work.add(batch)
            told(len(work.found))
        return batches.report
    report = run_part(subject, part, tallies, told, inputs=inputs)
    for example in work.found.values():
        for spot in example.maps.sum((1, 2)).isnan().nonzero().flatten()[:1].tolist():
            refuse_nan(subject, "{}.{}".format(*work.heads[spot]))
    return report


@dataclass
class ReadExamples:
    """The examples of a corpus, or of a part: parts merge, and their maps move into the room."""

    kept: ClassVar[tuple[type, ...]] = (ProbeExample,)
    #: How the rows of a word's pieces become one, and the precision of the maps that are kept.
    rows: Rows
    precision: str
    heads: tuple[Head, ...]
    maps: bool
    found: dict[int, ProbeExample] = field(default_factory=dict, init=False)
    #: The ids of each word's pieces, by which a model's own vectors are looked up.
    pieces: dict[int, list[list[int]]] = field(default_factory=dict, init=False)
    cut: set[int] = field(default_factory=set, init=False)

    def __post_init__(self) -> None:
        """Room and vectors are the whole's alone; the batch under way is nobody's."""
        self.room: Room | None = None
        self.vectors: WordVectors | None = None
        self._batch: Batch | None = None

    def __deepcopy__(self, memo: object) -> ReadExamples:
        """Fresh, without room and vectors: only the whole has them."""
        return ReadExamples(self.rows, self.precision, self.heads, self.maps)

    @property
    def needs(self) -> Needs:
        """Whole maps."""
        return Needs(maps=True)

    def merge(self, other: ReadExamples) -> None:
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

    def compute(self) -> list[Reading]:
        """No column: what is learned of them is the probe's."""
        return []

    def add(self, batch: Batch) -> None:
        """The sentences of a batch; their maps are still to come."""
        self._batch = batch
        side = batch.query(self.heads[0].stack)
        assert side is not None
        self._layout, self._shown = placed(side), list[ProbeExample | None]()
        for row, (index, window) in enumerate(zip(batch.index, batch.window, strict=True)):
            sentence, example = self._layout.sentences[row], None
            if window:
                self.cut.add(index)
            elif sentence is not None:
                pieces = self._layout.pieces[row, EXTRA:]
                # Shorter sentences are padded.
                own = zip(sentence.words or (), pieces, strict=False)
                self.pieces[index] = [side.ids[row][each].tolist() for _, each in own]
                example = self.found[index] = self._example(index, sentence)
            self._shown.append(example)

    def update(self, sighting: Sighting) -> None:
        """The maps of one site."""
        if sighting.batch is not self._batch:
            self.add(sighting.batch)
        assert sighting.maps is not None
        words = self._layout.to(sighting.maps.device)
        maps = word_maps(sighting.maps, words, words, rows=self.rows).cpu()
        spots = [self.heads.index(head) for head in sighting.site.names]
        for row, example in zip(maps, self._shown, strict=True):
            if example is not None and example.maps is not None:
                size = EXTRA + len(example)
                example.maps[spots] = row[:, :size, :size].to(example.maps.dtype)

    def _example(self, index: int, sentence: Sentence) -> ProbeExample:
        words = sentence.words or ()
        gold = [UNKNOWN if word.head is None else word.head for word in words]
        heads = torch.tensor([head if 0 <= head <= len(words) else UNKNOWN for head in gold])
        marks = [(word.deprel or "").split(":")[0] == "punct" for word in words]
        maps = None
        if self.maps:
            shape = (len(self.heads), EXTRA + len(words), EXTRA + len(words))
            maps = torch.zeros(shape, dtype=getattr(torch, self.precision))
        return ProbeExample(
            index,
            tuple(word.form for word in words),
            heads.long(),
            (heads != UNKNOWN) & ~torch.tensor(marks, dtype=torch.bool),
            torch.zeros(len(words), dtype=torch.long),
            maps,
        )
