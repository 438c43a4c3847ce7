"""A corpus becomes batches: tokenised, cut to length, bucketed and padded."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from headcount.errors import UsageError
from headcount.text.account import EncodeReport
from headcount.text.alignment import Placed, count_words
from headcount.text.batch import Batch
from headcount.text.corpus import Corpus, read_corpus
from headcount.text.fit import Example
from headcount.text.intake import Intake
from headcount.text.joined import joined
from headcount.text.padding import Padder
from headcount.text.plan import (
    Long,
    Plan,
    check_chat,
    check_corpus,
    finds_words,
    fit_for,
    kind_of,
)
from headcount.text.rows import Row
from headcount.text.scribe import Scribe
from headcount.text.sentence import Item, Pair, Sentence, sentences_of, texts_of

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

__all__ = ["Encoded", "encode"]

# So many batches, and no more sentences than that, are tokenised together and sorted by length:
# little padding, little memory.
_POOL, _MOST = 64, 8192

T = TypeVar("T")


def encode(
    corpus: Corpus | Iterable[Any] | str,
    tokenizer: PreTrainedTokenizerBase | None,
    *,
    stacks: Collection[str],
    intake: Intake | None = None,
    batch_size: int = 16,
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
    kind = kind_of(stacks, intake)
    decoded = kind == "encoder-decoder" and not {"dec", "cross"}.isdisjoint(stacks)
    if tokenizer is None:
        raise UsageError(
            "Reading text needs a tokenizer and this subject has none; pass one: --tokenizer, or "
            "hc.Subject(model, tokenizer)."
        )
    check_corpus(corpus, kind, decoded)
    if chat:
        check_chat(corpus, tokenizer)
    paired = decoded or (kind == "encoder" and corpus.paired)
    fit = fit_for(kind, intake, max_length, long, paired)
    found = finds_words(corpus, tokenizer, words)
    plan = Plan(kind, decoded, intake, fit, batch_size, chat, markup, padding_side, sort, found)
    return Encoded(corpus, tokenizer, plan)


@dataclass
class Encoded:
    """The batches of a corpus; each pass makes them anew, and `report` tells of the last pass."""

    corpus: Corpus
    tokenizer: PreTrainedTokenizerBase
    plan: Plan
    report: EncodeReport = field(default_factory=EncodeReport)

    def __iter__(self) -> Iterator[Batch]:
        self.report = report = EncodeReport()
        left = self.plan.padding_side == "left"
        padder = Padder(self.tokenizer, self.plan.intake, left=left, words=self.plan.words)
        for group in _groups(self._examples(report), self.plan.batch_size):
            batch = padder.batch(group, self.plan.side)
            report.rows += len(batch)
            for name, side in batch.sides.items():
                report.tokens[name] += int(side.real.sum())
            yield batch

    def _examples(self, report: EncodeReport) -> Iterator[Example]:
        """Fitted rows in the order in which they are batched."""
        markup, places = self.plan.markup, self.plan.words
        scribe = Scribe(self.tokenizer, report, markup=markup, places=places)
        for pool in _groups(enumerate(self.corpus), min(self.plan.batch_size * _POOL, _MOST)):
            report.sentences += len(pool)
            rows = self._rows([item for _, item in pool], scribe)
            fitted = [
                example
                for (index, item), (row, labels) in zip(pool, rows, strict=True)
                for example in self._fitted(index, item, row, labels, report)
            ]
            yield from sorted(fitted, key=_length) if self.plan.sort else fitted

    def _fitted(
        self, index: int, item: Item, row: Row, labels: Row | None, report: EncodeReport
    ) -> list[Example]:
        """The item's examples, with its words where they are found."""
        first, second = _annotations(item, decoded=labels is not None)
        example = Example(
            index,
            row,
            labels,
            words=Placed(first, row) if self.plan.words and first else None,
            label_words=Placed(second, labels) if self.plan.words and second and labels else None,
        )
        found = self.plan.fit(example, _name(index, item, self.corpus.name), report)
        count_words(example.words, [each.row for each in found], report)
        labelled = [each.labels for each in found if each.labels is not None]
        count_words(example.label_words, labelled, report)
        return found

    def _rows(self, items: list[Item], scribe: Scribe) -> list[tuple[Row, Row | None]]:
        """Each item's input row, and its labels where there are any."""
        firsts = [item.source if isinstance(item, Pair) else item.text for item in items]
        seconds = [item.target for item in items if isinstance(item, Pair)]
        if self.plan.chat:
            rows = scribe.chat_rows(firsts)
        else:
            in_one = seconds if self.plan.kind == "encoder" and seconds else None
            rows = scribe.rows(firsts, in_one)
        if not self.plan.decoded:
            return [(row, None) for row in rows]
        return list(zip(rows, scribe.rows(seconds, target=True), strict=True))


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


def _length(example: Example) -> tuple[int, ...]:
    """Longest first, so that a batch that does not fit in memory shows at once."""
    return tuple(-len(row.ids) for row in example.rows)


def _groups(items: Iterable[T], size: int) -> Iterator[list[T]]:
    stream = iter(items)
    while group := list(islice(stream, size)):
        yield group
