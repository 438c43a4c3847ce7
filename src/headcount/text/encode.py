"""A corpus becomes batches: tokenised, cut to length, bucketed and padded."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from headcount.errors import InputError, UsageError
from headcount.heads import STACKS
from headcount.text.account import EncodeReport
from headcount.text.batch import Batch
from headcount.text.chat import must_have_template
from headcount.text.corpus import Corpus, read_corpus
from headcount.text.fit import Example, Fit
from headcount.text.intake import Intake
from headcount.text.padding import Padder
from headcount.text.rows import Row
from headcount.text.scribe import Scribe
from headcount.text.sentence import Item, Pair

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

__all__ = ["Encoded", "encode"]

# So many batches are tokenised together and sorted by length: little padding, little memory.
_POOL = 64

Long = Literal["window", "truncate", "error"]
Kind = Literal["encoder", "decoder", "encoder-decoder"]
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
    """
    corpus = read_corpus(corpus)
    intake = intake or Intake()
    kind = _kind(stacks, intake)
    if tokenizer is None:
        raise UsageError(
            "Reading text needs a tokenizer and this subject has none; pass one: "
            "hc.Subject(model, tokenizer)."
        )
    _check(batch_size, long, padding_side)
    _check_corpus(corpus, kind, stacks, chat)
    if chat:
        must_have_template(tokenizer)
    limit, label_limit = _limits(max_length, intake, kind)
    decoded = kind == "encoder-decoder" and bool({"dec", "cross"} & set(stacks))
    fit = Fit(limit, label_limit, long, paired=decoded or (kind == "encoder" and corpus.paired))
    left = padding_side == "left"
    plan = Plan(kind, decoded, intake, fit, batch_size, chat, markup, left, sort)
    return Encoded(corpus, tokenizer, plan)


@dataclass(frozen=True)
class Plan:
    """How a corpus is encoded, every choice made."""

    kind: Kind
    #: Whether the decoder of an encoder-decoder is fed the targets.
    decoded: bool
    intake: Intake
    fit: Fit
    batch_size: int
    chat: bool
    markup: bool
    left: bool
    sort: bool

    @property
    def side(self) -> str:
        """Which side an input row is."""
        return "target" if self.kind == "decoder" else "source"


@dataclass
class Encoded:
    """The batches of a corpus; each pass makes them anew, and `report` tells of the last pass."""

    corpus: Corpus
    tokenizer: PreTrainedTokenizerBase
    plan: Plan
    report: EncodeReport = field(default_factory=EncodeReport)

    def __iter__(self) -> Iterator[Batch]:
        self.report = report = EncodeReport()
        padder = Padder(self.tokenizer, self.plan.intake, left=self.plan.left)
        for group in _groups(self._examples(report), self.plan.batch_size):
            batch = padder.batch(group, self.plan.side)
            report.rows += len(batch)
            for name, side in batch.sides.items():
                report.tokens[name] += int(side.real.sum())
            yield batch

    def _examples(self, report: EncodeReport) -> Iterator[Example]:
        """Fitted rows in the order in which they are batched."""
        scribe = Scribe(self.tokenizer, report, markup=self.plan.markup)
        for pool in _groups(enumerate(self.corpus), self.plan.batch_size * _POOL):
            report.sentences += len(pool)
            rows = self._rows([item for _, item in pool], scribe)
            fitted = [
                example
                for (index, item), (row, labels) in zip(pool, rows, strict=True)
                for example in self.plan.fit(
                    Example(index, row, labels), _name(index, item, self.corpus.name), report
                )
            ]
            yield from sorted(fitted, key=_length) if self.plan.sort else fitted

    def _rows(self, items: list[Item], scribe: Scribe) -> list[tuple[Row, Row | None]]:
        """Each item's input row, and its labels where there are any."""
        firsts = [item.source if isinstance(item, Pair) else item.text for item in items]
        seconds = [item.target for item in items if isinstance(item, Pair)]
        if self.plan.chat:
            rows = scribe.chat_rows(firsts)
        else:
            rows = scribe.rows(firsts, seconds if self.plan.kind == "encoder" and seconds else None)
        if not self.plan.decoded:
            return [(row, None) for row in rows]
        return list(zip(rows, scribe.rows(seconds, target=True), strict=True))


def _kind(stacks: Collection[str], intake: Intake) -> Kind:
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


def _check(batch_size: int, long: str, padding_side: str) -> None:
    if batch_size < 1:
        raise UsageError(f"The batch size is {batch_size}; it must be 1 or more.")
    if long not in ("window", "truncate", "error"):
        raise UsageError(f"long is '{long}'; choose window, truncate or error.")
    if padding_side not in ("right", "left"):
        raise UsageError(f"The padding side is '{padding_side}'; choose right or left.")


def _check_corpus(corpus: Corpus, kind: Kind, stacks: Collection[str], chat: bool) -> None:
    if kind == "encoder-decoder" and not corpus.paired and {"dec", "cross"} & set(stacks):
        raise InputError(
            f"{corpus.name} has no targets, which a decoder's heads need; give pairs (a .tsv with "
            "source and target), or survey the encoder alone with stacks={'enc'}."
        )
    if kind == "decoder" and corpus.paired:
        raise InputError(
            f"{corpus.name} holds pairs, which a decoder-only model cannot take; give one text a "
            "line (.txt)."
        )
    if chat and corpus.paired:
        raise UsageError(
            f"{corpus.name} holds pairs, and a chat turn is one text; leave out chat=True (--chat)."
        )


def _limits(asked: int | None, intake: Intake, kind: Kind) -> tuple[int | None, int | None]:
    """The longest input and the longest labels: as asked, never more than the model takes."""
    limit = intake.target_limit if kind == "decoder" else intake.source_limit
    label_limit = intake.target_limit
    if asked is None:
        return limit, label_limit
    least = min((found for found in (limit, label_limit) if found is not None), default=asked)
    if not 1 <= asked <= least:
        raise UsageError(f"The maximum length is {asked}; this model takes 1 to {least} tokens.")
    return asked, asked


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
