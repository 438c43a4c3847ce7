"""A corpus becomes batches: tokenised, cut to length, bucketed and padded."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from headcount.errors import InputError, UsageError
from headcount.records import STACKS
from headcount.text.batch import Batch, EncodedExample, Fit, Padder
from headcount.text.corpus import Corpus, read_corpus
from headcount.text.sentence import Item, Pair, Sentence, joined, sentences_of, texts_of
from headcount.text.spans import EncodeReport, TokenRow, gives_places, must_give_places
from headcount.text.tokenize import Intake, RowTokenizer, must_have_template
from headcount.text.words import Placed, count_words

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


# --- How a corpus is to be encoded --------------------------------------------------------------

Kind = Literal["encoder", "decoder", "encoder-decoder"]
Long = Literal["window", "truncate", "error"]


@dataclass(frozen=True)
class BatchSize:
    """The limits of one batch: rows, tokens with padding, cells of a map.

    >>> BatchSize(rows=2).holds(3, 10), BatchSize(tokens=64, step=8).holds(3, 17)
    (False, False)
    """

    rows: int | None = None
    tokens: int | None = None
    #: The most rows times the square of the longest.
    cells: int | None = None
    #: Rows are padded to a multiple of so many tokens, where the model takes as many.
    step: int = 1

    def __post_init__(self) -> None:
        if self.rows is not None and self.rows < 1:
            raise UsageError(f"The batch size is {self.rows}; it must be 1 or more.")

    def holds(self, rows: int, longest: int) -> bool:
        """Whether N rows of this length fit into one batch."""
        wide = -(-longest // self.step) * self.step
        return (
            rows <= (self.rows or rows)
            and rows * wide <= (self.tokens or math.inf)
            and rows * longest**2 <= (self.cells or math.inf)
        )


def model_kind(stacks: Collection[str], intake: Intake) -> Kind:
    """What sort of model has these stacks and takes this in.

    >>> model_kind({"dec"}, Intake())
    'decoder'
    """
    unknown = sorted(set(stacks) - set(STACKS))
    if unknown or not stacks:
        raise UsageError(
            f"{unknown or 'No stack'} cannot be encoded for; stacks are {', '.join(STACKS)}."
        )
    if intake.shift is not None:
        return "encoder-decoder"
    if "enc" in stacks and len(set(stacks)) > 1:
        raise UsageError(
            "An encoder-decoder's inputs depend on how its decoder starts; "
            "pass intake=intake_of(model)."
        )
    return "encoder" if "enc" in stacks else "decoder"


def check_corpus(corpus: Corpus, kind: Kind, decoded: bool) -> None:
    """Refuse a corpus that this kind of model cannot take."""
    if decoded and not corpus.paired:
        raise InputError(
            f"{corpus.name} has no targets, which a decoder's heads need; give pairs (--pairs, a "
            ".tsv with source and target), or look at the encoder alone (--reading stacks=enc)."
        )
    if kind == "decoder" and corpus.paired:
        raise InputError(
            f"{corpus.name} holds pairs, which a decoder-only model cannot take; give one text a "
            "line (.txt)."
        )


def finds_words(corpus: Corpus, tokenizer: PreTrainedTokenizerBase, wanted: bool | None) -> bool:
    """Whether words will be found: as wanted, else wherever corpus and tokenizer allow it."""
    if wanted and not corpus.annotated:
        raise InputError(
            f"{corpus.name} has no words, only text; give a treebank (.conllu), or parse it "
            "(--judging parser=)."
        )
    if wanted:
        must_give_places(tokenizer)
    return corpus.annotated and wanted is not False and gives_places(tokenizer)


def fit_for(kind: Kind, intake: Intake, max_length: int | None, long: Long, paired: bool) -> Fit:
    """What fits the model and the given limit."""
    if long not in ("window", "truncate", "error"):
        raise UsageError(f"long is '{long}'; choose window, truncate or error.")
    limit = intake.target_limit if kind == "decoder" else intake.source_limit
    most = max_length if limit is None else limit
    if max_length is not None and most is not None and not 1 <= max_length <= most:
        raise UsageError(
            f"The maximum length is {max_length}; this model takes 1 to {most} tokens."
        )
    return Fit(_least(max_length, limit), _least(max_length, intake.target_limit), long, paired)


def _least(*limits: int | None) -> int | None:
    return min((limit for limit in limits if limit is not None), default=None)


# --- A corpus becomes batches -------------------------------------------------------------------

# So many batches, and no more sentences than that, are tokenised together and sorted by length:
# little padding, little memory.
_POOL, _MOST = 64, 8192

#: A batch of so many tokens keeps a device busy: no shorter texts are put to longer ones in it
#: whose rows would be a quarter padding.
_ENOUGH, _FULL = 2048, 0.75

T = TypeVar("T")


def encode(
    corpus: Corpus | Iterable[Any] | str,
    tokenizer: PreTrainedTokenizerBase | None,
    *,
    stacks: Collection[str],
    intake: Intake | None = None,
    batch_size: int | BatchSize = 16,
    max_length: int | None = None,
    long: Long = "window",
    chat: bool = False,
    markup: bool = False,
    padding_side: Literal["right", "left"] = "right",
    sort: bool = True,
    words: bool | None = None,
) -> Encoded:
    """Encode a corpus for a model that has these stacks.

    ``{"enc"}`` is an encoder, ``{"dec"}`` a decoder-only model; an encoder-decoder also needs its
    `intake` (`intake_of(model)`), which brings limits too. With ``{"enc"}`` an encoder-decoder
    takes single sentences: its decoder then sees one token and has no side.

    A sentence over the limit is cut into windows that follow one another without overlap
    (`long`; "truncate" keeps the beginning, "error" raises). Pairs, of any kind, are truncated
    instead, the longer text first. `chat` renders each sentence as a user turn; `markup` lets
    special tokens written in a text count as such. Rows come sorted by length, a pool at a time,
    unless `sort` is off; `Batch.index` says which item a row is. The tokenizer is not changed.

    Sides of an annotated corpus have `words`. Where the tokenizer does not tell where its tokens
    stand they have none, and with ``words=True`` that is an error.
    """
    corpus = read_corpus(corpus)
    intake = intake or Intake()
    kind = model_kind(stacks, intake)
    decoded = kind == "encoder-decoder" and not {"dec", "cross"}.isdisjoint(stacks)
    if tokenizer is None:
        raise UsageError(
            "Reading text needs a tokenizer and this subject has none; pass one: "
            "--load tokenizer=, or hc.Subject(model, tokenizer)."
        )
    check_corpus(corpus, kind, decoded)
    if chat:
        if corpus.paired:
            raise UsageError(
                f"{corpus.name} holds pairs, and a chat turn is one text; leave out chat=True "
                "(--chat)."
            )
        must_have_template(tokenizer)
    paired = decoded or (kind == "encoder" and corpus.paired)
    fit = fit_for(kind, intake, max_length, long, paired)
    found = finds_words(corpus, tokenizer, words)
    size = batch_size if isinstance(batch_size, BatchSize) else BatchSize(rows=batch_size)
    if padding_side not in ("right", "left"):
        raise UsageError(f"The padding side is '{padding_side}'; choose right or left.")
    left = padding_side == "left"
    return Encoded(
        corpus, tokenizer, kind, decoded, intake, fit, size, chat, markup, left, sort, found
    )


@dataclass
class Encoded:
    """The batches of a corpus; each pass makes them anew, and `report` tells of the last pass."""

    corpus: Corpus
    tokenizer: PreTrainedTokenizerBase
    kind: Kind
    #: Whether the decoder of an encoder-decoder is fed the targets.
    decoded: bool
    intake: Intake
    fit: Fit
    size: BatchSize
    chat: bool = False
    markup: bool = False
    #: Whether the padding stands on the left.
    left: bool = False
    sort: bool = True
    #: Whether the corpus' words are found among the tokens.
    words: bool = False
    report: EncodeReport = field(default_factory=EncodeReport)

    def __iter__(self) -> Iterator[Batch]:
        self.report = report = EncodeReport()
        padder = Padder(
            self.tokenizer,
            self.intake,
            left=self.left,
            words=self.words,
            step=self.size.step,
        )
        for group in self._batched(self._examples(report)):
            batch = padder.batch(group, "target" if self.kind == "decoder" else "source")
            report.rows += len(batch)
            for name, side in batch.sides.items():
                report.tokens[name] += int(side.real.sum())
            yield batch

    def _batched(self, examples: Iterable[EncodedExample]) -> Iterator[list[EncodedExample]]:
        """Examples by batch: as many as one may have."""
        group: list[EncodedExample] = []
        longest, size = 0, self.size
        for example in examples:
            own = max(len(row.ids) for row in example.rows)
            longest = max(longest, own)
            enough = size.tokens is not None and len(group) * longest >= min(_ENOUGH, size.tokens)
            if group and (
                not size.holds(len(group) + 1, longest) or (enough and own < longest * _FULL)
            ):
                yield group
                group, longest = [], own
            group.append(example)
        if group:
            yield group

    def _examples(self, report: EncodeReport) -> Iterator[EncodedExample]:
        """Fitted rows in the order in which they are batched."""
        markup, places = self.markup, self.words
        tokenize = RowTokenizer(self.tokenizer, report, markup=markup, places=places)
        pooled = min((self.size.rows or _MOST) * _POOL, _MOST)
        for pool in _groups(self.corpus.numbered(), pooled):
            report.sentences += len(pool)
            rows = self._rows([item for _, item in pool], tokenize)
            fitted = [
                example
                for (index, item), (row, labels) in zip(pool, rows, strict=True)
                for example in self._fitted(index, item, row, labels, report)
            ]
            yield from sorted(fitted, key=_length) if self.sort else fitted

    def _fitted(
        self, index: int, item: Item, row: TokenRow, labels: TokenRow | None, report: EncodeReport
    ) -> list[EncodedExample]:
        """The item's examples, with its words where they are found."""
        first, second = _annotations(item, decoded=labels is not None)
        example = EncodedExample(
            index,
            row,
            labels,
            words=Placed(first, row) if self.words and first else None,
            label_words=Placed(second, labels) if self.words and second and labels else None,
        )
        found = self.fit(example, _name(index, item, self.corpus.name), report)
        count_words(example.words, [each.row for each in found], report)
        labelled = [each.labels for each in found if each.labels is not None]
        count_words(example.label_words, labelled, report)
        return found

    def _rows(
        self, items: list[Item], tokenize: RowTokenizer
    ) -> list[tuple[TokenRow, TokenRow | None]]:
        """Each item's input row, and its labels where there are any."""
        firsts = [item.source if isinstance(item, Pair) else item.text for item in items]
        seconds = [item.target for item in items if isinstance(item, Pair)]
        if self.chat:
            rows = tokenize.chat_rows(firsts)
        else:
            in_one = seconds if self.kind == "encoder" and seconds else None
            rows = tokenize.rows(firsts, in_one)
        if not self.decoded:
            return [(row, None) for row in rows]
        return list(zip(rows, tokenize.rows(seconds, target=True), strict=True))


def _annotations(item: Item, decoded: bool) -> tuple[Sentence | None, Sentence | None]:
    """The annotated sentences of the input row and of the labels; two texts in a row are one."""
    found = sentences_of(item)
    if isinstance(item, Sentence):
        return found[0], None
    if decoded or not any(found):
        return found[0], found[1]
    first, second = (
        each or Sentence(text) for each, text in zip(found, texts_of(item), strict=True)
    )
    return joined(first, second), None


def _name(index: int, item: Item, corpus: str) -> str:
    line = f" (line {item.line})" if item.line is not None else ""
    return f"Item {index + 1} of {corpus}{line}"


def _length(example: EncodedExample) -> tuple[int, int]:
    """Longest first, so that a batch that does not fit in memory shows at once.

    Of a pair the longer text counts: each side is padded to its longest.
    """
    lengths = [len(row.ids) for row in example.rows]
    return -max(lengths), -sum(lengths)


def _groups(items: Iterable[T], size: int) -> Iterator[list[T]]:
    stream = iter(items)
    while group := list(islice(stream, size)):
        yield group
