"""A batch: what the model's forward takes, and what is known of its tokens."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar, TypeGuard

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from headcount.errors import InputError, ModelError
from headcount.text.spans import (
    EncodeReport,
    TokenRow,
    content_length,
    separator_ids,
    shorten,
    windows,
)
from headcount.text.tokenize import Intake, Shift
from headcount.text.words import Placed, Vocabulary, Words, vocabulary_of, words_of

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


# --- Rows made to fit the model: windows, truncation, and what is skipped -----------------------


@dataclass(frozen=True, slots=True)
class EncodedExample:
    """One row of a batch to be: the input, and for an encoder-decoder the labels."""

    index: int
    row: TokenRow
    labels: TokenRow | None = None
    window: int = 0
    #: The words of the input and of the labels, where they are known.
    words: Placed | None = None
    label_words: Placed | None = None

    @property
    def rows(self) -> list[TokenRow]:
        """The input and, where there are any, the labels."""
        return [self.row] if self.labels is None else [self.row, self.labels]


@dataclass(frozen=True)
class Fit:
    """Gives the rows of an item that the model can take: none, one, or several windows."""

    limit: int | None
    label_limit: int | None
    #: What happens to a sentence that is too long: "window", "truncate" or "error".
    long: str
    #: Whether an item is two texts; then a long one is truncated, for windows would tear it.
    paired: bool

    def __call__(
        self, example: EncodedExample, name: str, report: EncodeReport
    ) -> list[EncodedExample]:
        """The example's rows, with every change counted; `name` is the item's in an error."""
        lengths = [content_length(row) for row in example.rows]
        if min(lengths) == 0:
            report.empty += 1
            return []
        report.single += lengths[0] == 1
        limits = (self.limit, self.label_limit)
        over = [
            (row, limit)
            for row, limit in zip(example.rows, limits, strict=False)
            if limit is not None and len(row.ids) > limit
        ]
        if not over:
            return [example]
        if self.long == "error":
            row, limit = over[0]
            raise InputError(
                f"{name} has {len(row.ids)} tokens and the model takes {limit}; shorten it, or use "
                "long='window' or long='truncate' (--reading long=)."
            )
        if self.long == "truncate" or self.paired:
            report.truncated += 1
            short = {id(row): shorten(row, limit) for row, limit in over}
            row, *labels = (short.get(id(row), row) for row in example.rows)
            return [replace(example, row=row, labels=labels[0] if labels else None)]
        assert self.limit is not None  # or the row would not be over it
        pieces = windows(example.row, self.limit)
        report.windowed += 1
        report.windows += len(pieces)
        return [replace(example, row=piece, window=number) for number, piece in enumerate(pieces)]


# --- One text side of a batch: padded ids, and what stands at each place ------------------------


@dataclass(frozen=True)
class Side:
    """One text side of a batch; every tensor is ``[batch, token]``, padding included.

    A place is `special` when the tokenizer put it there (or when it starts a decoder), whatever
    the text says; `separator` marks the special places that end a text, never the first one.
    """

    #: Token ids.
    ids: Tensor
    #: True where there is a token, False on padding.
    real: Tensor
    special: Tensor
    separator: Tensor
    #: True where a token of the text is all Unicode punctuation.
    punctuation: Tensor
    #: True where it is exactly a full stop or a comma.
    stops: Tensor
    #: Tokens as the tokenizer writes them, padding left out.
    tokens: list[list[str]]
    #: False when nothing is known of the tokens, as for ready inputs: a share of such a side's
    #: separators or punctuation is not 0 but unknown.
    annotated: bool = True
    #: The words of an annotated corpus; None for plain text.
    words: Words | None = None

    #: The names of what is told of every place.
    parts: ClassVar[tuple[str, ...]] = (
        "ids",
        "real",
        "special",
        "separator",
        "punctuation",
        "stops",
    )

    def __len__(self) -> int:
        return len(self.tokens)

    def to(self, device: torch.device | str) -> Side:
        """The same side on a device."""
        if self.ids.device == torch.device(device):
            return self
        # The flags travel together: each transfer to a GPU costs as much as a large one.
        flags = sent(torch.stack([getattr(self, name) for name in self.parts[1:]]), device)
        moved: dict[str, Any] = dict(zip(self.parts[1:], flags.unbind(), strict=True))
        moved["ids"] = sent(self.ids, device)
        return replace(self, **moved, words=self.words and self.words.to(device))

    @classmethod
    def together(cls, sides: Sequence[Side]) -> Side:
        """The texts of several sides of one length as one side, without their words."""
        first = sides[0]
        whole: dict[str, Any] = {
            name: torch.cat([getattr(side, name) for side in sides]) for name in cls.parts
        }
        tokens = [row for side in sides for row in side.tokens]
        return cls(**whole, tokens=tokens, annotated=first.annotated)

    def at(self, places: Tensor) -> Side:
        """The tokens at some places ``[batch, n]``; words go with the whole text only."""
        taken = {name: getattr(self, name).gather(1, places) for name in self.parts}
        return replace(self, **taken, words=None)


def sent(tensor: Tensor, device: torch.device | str) -> Tensor:
    """A tensor on a device; a GPU takes it when it gets there, and nobody waits for it.

    From ordinary memory a transfer waits until all that was asked of the GPU before is done.
    """
    if torch.device(device).type == "cuda" and tensor.device.type == "cpu":
        tensor = tensor.pin_memory()
    return tensor.to(device, non_blocking=True)


def side_of(
    rows: Sequence[TokenRow],
    vocabulary: Vocabulary,
    *,
    separators: tuple[int, ...],
    pad_id: int,
    left: bool = False,
    words: Sequence[Placed | None] | None = None,
    width: int = 0,
) -> Side:
    """Pad rows into a side, as wide as the longest or wider, and look every token up.

    `words` belong to an annotated corpus.

    >>> side = side_of([TokenRow([2, 7, 3], [1, 0, 1]), TokenRow([2, 3], [1, 1])],
    ...     Vocabulary(lambda ids: [str(number) for number in ids], "".join),
    ...     separators=(3,), pad_id=0)
    >>> side.ids.tolist(), side.separator.tolist()
    ([[2, 7, 3], [2, 3, 0]], [[False, False, True], [False, True, False]])
    """
    lengths = np.array([len(row.ids) for row in rows], dtype=np.int64)
    ids = _flat([row.ids for row in rows])
    special = _flat([row.special for row in rows]) > 0
    first = np.zeros(len(ids), dtype=bool)
    first[np.cumsum(lengths) - lengths] = True
    punctuation, stops = vocabulary.flags(ids)
    places = np.arange(max(width, lengths.max(initial=0)))
    real = places < lengths[:, None]
    if left:
        real = real[:, ::-1]
    padded = partial(spread, real=real, fill=False)
    return Side(
        ids=spread(ids, real, pad_id),
        real=torch.from_numpy(np.ascontiguousarray(real)),
        special=padded(special),
        separator=padded(special & np.isin(ids, separators) & ~first),
        punctuation=padded(punctuation & ~special),
        stops=padded(stops & ~special),
        tokens=[vocabulary.tokens(row.ids) for row in rows],
        words=None if words is None else words_of(rows, words, real),
    )


def bare_side(ids: Tensor, real: Tensor) -> Side:
    """A side of which only ids and padding are known, so it has no tokens to show.

    >>> bare_side(torch.tensor([[5, 6]]), torch.tensor([[True, True]])).annotated
    False
    """
    nothing = torch.zeros_like(real)
    tokens: list[list[str]] = [[] for _ in range(real.shape[0])]
    return Side(ids, real, nothing, nothing, nothing, nothing, tokens, annotated=False)


def spread(values: NDArray[np.generic], real: NDArray[np.bool_], fill: int | bool) -> Tensor:
    """Values one after another, put in the real places of a padded tensor."""
    room = np.full(real.shape, fill, dtype=values.dtype)
    room[real] = values
    return torch.from_numpy(room)


def _flat(rows: Sequence[Sequence[int]]) -> NDArray[np.int64]:
    return np.fromiter(chain.from_iterable(rows), dtype=np.int64)


# --- A batch ------------------------------------------------------------------------------------

#: Whose tokens ask and whose are looked at, by stack.
SIDES = {"enc": ("source", "source"), "dec": ("target", "target"), "cross": ("target", "source")}


@dataclass(frozen=True)
class Batch:
    """Inputs for one forward, and the sides they come from.

    `sides` has "source" for an encoder's input and "target" for a decoder's. A side is missing
    where its number of tokens is known inside the model only (images, sound) and where it is not
    surveyed.
    """

    #: Exactly what forward takes, by argument name.
    inputs: dict[str, Tensor]
    sides: dict[str, Side]
    #: Which item of the corpus each row is.
    index: list[int]
    #: Which window of that item, from 0.
    window: list[int] = field(default_factory=list)
    #: What the decoder should say, -100 on padding; for encoder-decoders only.
    labels: Tensor | None = None

    def __len__(self) -> int:
        return len(self.index)

    def query(self, stack: str) -> Side | None:
        """The side whose tokens attend in a stack."""
        return self.sides.get(SIDES[stack][0])

    def key(self, stack: str) -> Side | None:
        """The side whose tokens are attended to in a stack."""
        return self.sides.get(SIDES[stack][1])

    def to(self, device: torch.device | str) -> Batch:
        """The same batch on a device."""
        inputs = {name: sent(tensor, device) for name, tensor in self.inputs.items()}
        sides = {name: side.to(device) for name, side in self.sides.items()}
        labels = None if self.labels is None else sent(self.labels, device)
        return replace(self, inputs=inputs, sides=sides, labels=labels)


def ready_batch(inputs: Mapping[str, Tensor], stacks: Collection[str], first: int = 0) -> Batch:
    """A batch from inputs that the caller prepared, for models that read no text.

    Sides are made from ids or embeddings and their attention masks, all tokens ordinary. From
    images or sound (``pixel_values``, ``input_features``) only the model knows how many tokens
    come: then that side is missing. `first` is the first row's number.

    >>> batch = ready_batch({"input_ids": torch.tensor([[5, 6]])}, {"enc"})
    >>> batch.sides["source"].real.tolist(), batch.sides["source"].annotated
    ([[True, True]], False)
    """
    rows = _rows(inputs)
    found = {"source" if "enc" in stacks else "target": _ready_side(inputs, "")}
    if "enc" in stacks and "dec" in stacks:
        found["target"] = _ready_side(inputs, "decoder_")
    if "cross" in stacks and not {"decoder_input_ids", "decoder_inputs_embeds"} & {*inputs}:
        raise InputError(
            f"Ready inputs of an encoder-decoder lack decoder_input_ids (they have "
            f"{', '.join(inputs)}); add what the decoder reads, e.g. its start token in every row."
        )
    sides = {name: side for name, side in found.items() if side is not None}
    return Batch(dict(inputs), sides, list(range(first, first + rows)), [0] * rows)


def _rows(inputs: Mapping[str, Tensor]) -> int:
    sizes = {name: tensor.shape[0] for name, tensor in inputs.items() if tensor.dim() > 0}
    if len(set(sizes.values())) != 1:
        said = ", ".join(f"{name} {size}" for name, size in sizes.items()) or "nothing"
        raise InputError(
            f"Ready inputs must all have the same first axis, the batch; they have {said}."
        )
    return next(iter(sizes.values()))


def _ready_side(inputs: Mapping[str, Tensor], prefix: str) -> Side | None:
    ids, embedded = inputs.get(f"{prefix}input_ids"), inputs.get(f"{prefix}inputs_embeds")
    if ids is None and embedded is not None:
        ids = torch.zeros(embedded.shape[:2], dtype=torch.long, device=embedded.device)
    if ids is None:
        return None
    real = inputs.get(f"{prefix}attention_mask")
    if real is not None and real.shape != ids.shape:
        raise InputError(
            f"{prefix}attention_mask has the shape {tuple(real.shape)}; it must be that of the "
            f"ids, {tuple(ids.shape)}."
        )
    there = torch.ones_like(ids, dtype=torch.bool) if real is None else real > 0
    return replace(bare_side(ids, there), tokens=_numbers(ids, there))


def _numbers(ids: Tensor, real: Tensor) -> list[list[str]]:
    """Ids as tokens, for want of a tokenizer."""
    rows = zip(ids.tolist(), real.tolist(), strict=True)
    return [
        [str(number) for number, there in zip(numbers, places, strict=True) if there]
        for numbers, places in rows
    ]


# --- Examples padded into a batch, by hand ------------------------------------------------------

_IGNORED = -100


class Padder:
    """Makes batches for one model from one tokenizer's rows."""

    def __init__(
        self,
        tokenizer: PreTrainedTokenizerBase,
        intake: Intake,
        *,
        left: bool = False,
        words: bool = False,
        step: int = 1,
    ) -> None:
        self._intake = intake
        self._left = left
        self._step = step
        self._words = words
        self._separators = separator_ids(tokenizer)
        # Any id will do under the attention mask, but some models look at it.
        known = (intake.pad_id, tokenizer.pad_token_id, tokenizer.eos_token_id)
        self._pad_id = int(next((n for n in known if n is not None and n >= 0), 0))
        self._source = vocabulary_of(tokenizer)
        self._target = vocabulary_of(tokenizer, target=True)

    def batch(self, examples: Sequence[EncodedExample], side: str) -> Batch:
        """The batch of some examples, whose rows are the source or the target side."""
        rows = [example.row for example in examples]
        limit = self._intake.target_limit if side == "target" else self._intake.source_limit
        known = [each.words for each in examples]
        sides = {side: self._side(rows, self._source, known, limit)}
        inputs = self._inputs(rows, sides[side])
        labels = [example.labels for example in examples if example.labels is not None]
        told = None
        if labels:
            assert self._intake.shift is not None  # only an encoder-decoder has labels
            started, known = _started(labels, self._intake.shift), [e.label_words for e in examples]
            target = self._side(started, self._target, known, self._intake.target_limit)
            sides["target"] = target
            told = spread(_flat([row.ids for row in labels]), target.real.numpy(), _IGNORED)
            inputs["decoder_input_ids"] = target.ids
            inputs["decoder_attention_mask"] = target.real.long()
        elif self._intake.shift is not None:
            # The decoder must get something even where only the encoder is looked at.
            inputs["decoder_input_ids"] = self._intake.shift(
                torch.tensor([row.ids[:1] for row in rows])
            )
        return Batch(
            inputs=inputs,
            sides=sides,
            index=[example.index for example in examples],
            window=[example.window for example in examples],
            labels=told,
        )

    def _side(
        self,
        rows: Sequence[TokenRow],
        vocabulary: Vocabulary,
        words: Sequence[Placed | None],
        limit: int | None,
    ) -> Side:
        longest = max(len(row.ids) for row in rows)
        wide = -(-longest // self._step) * self._step
        return side_of(
            rows,
            vocabulary,
            separators=self._separators,
            pad_id=self._pad_id,
            left=self._left,
            words=words if self._words else None,
            width=longest if limit is not None and wide > limit else wide,
        )

    def _inputs(self, rows: Sequence[TokenRow], side: Side) -> dict[str, Tensor]:
        inputs = {"input_ids": side.ids, "attention_mask": side.real.long()}
        if rows[0].types is not None and self._intake.accepts("token_type_ids"):
            types = _flat([row.types or () for row in rows])
            inputs["token_type_ids"] = spread(types, side.real.numpy(), 0)
        if self._left and self._intake.needs_positions:
            inputs["position_ids"] = token_positions(side.real)
        return inputs


def token_positions(real: Tensor) -> Tensor:
    """Positions of the real tokens counted from 0, whichever side is padded.

    >>> token_positions(torch.tensor([[False, True, True], [True, True, True]])).tolist()
    [[0, 0, 1], [0, 1, 2]]
    """
    return (real.long().cumsum(dim=1) - 1).clamp(min=0)


def _started(labels: Sequence[TokenRow], shift: Shift) -> list[TokenRow]:
    """Labels as the decoder reads them: started by the model's own rule, and no longer.

    A shifted row is as long as its labels; what the shift leaves behind that is padding.
    """
    width = max(len(row.ids) for row in labels)
    padded = torch.tensor([[*row.ids, *[_IGNORED] * (width - len(row.ids))] for row in labels])
    shifted = shift(padded).tolist()
    rows = []
    for row, ids in zip(labels, shifted, strict=True):
        if ids[1 : len(row.ids)] != list(row.ids[:-1]):
            raise ModelError(
                "The model's own decoder input is not its labels moved by one place, so it is not "
                "known which token stands where; pass ready inputs instead."
            )
        places = None if row.places is None else [None, *row.places[:-1]]
        rows.append(TokenRow(ids[: len(row.ids)], [1, *row.special[:-1]], places=places))
    return rows


# --- Inputs that the caller prepared ------------------------------------------------------------


def is_ready(corpus: Any) -> TypeGuard[Mapping[str, Any] | Sequence[Mapping[str, Any]]]:
    """Whether a corpus is model inputs rather than text: a mapping, or a list of them.

    >>> is_ready([{"input_ids": None}]), is_ready(["Rain fell."])
    (True, False)
    """
    if isinstance(corpus, list | tuple):
        return bool(corpus) and isinstance(corpus[0], Mapping)
    return isinstance(corpus, Mapping)


class Ready:
    """Batches of ready inputs, one mapping of tensors each, for a model that has these stacks.

    >>> import torch
    >>> ready = Ready({"input_ids": torch.tensor([[5, 6], [7, 8]])}, {"enc"})
    >>> len(ready), [batch.index for batch in ready], ready.report.tokens["source"]
    (2, [[0, 1]], 4)
    """

    name = "ready inputs"

    def __init__(
        self, inputs: Mapping[str, Any] | Sequence[Mapping[str, Any]], stacks: Collection[str]
    ) -> None:
        self._inputs = [inputs] if isinstance(inputs, Mapping) else list(inputs)
        self._stacks = stacks
        self.skipped: dict[str, int] = {}
        self.report = EncodeReport()
        for number, each in enumerate(self._inputs, start=1):
            _check(each, number)

    def __len__(self) -> int:
        return sum(len(next(iter(each.values()))) for each in self._inputs)

    def __iter__(self) -> Iterator[Batch]:
        self.report = report = EncodeReport()
        for each in self._inputs:
            batch = ready_batch(each, self._stacks, report.rows)
            report.sentences += len(batch)
            report.rows += len(batch)
            for name, side in batch.sides.items():
                report.tokens[name] += int(side.real.sum())
            yield batch

    @property
    def hash(self) -> str:
        """The sha256 of all inputs, with their names, types and shapes."""
        digest = hashlib.sha256()
        for each in self._inputs:
            for name, tensor in sorted(each.items()):
                digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
                digest.update(tensor.detach().cpu().double().numpy().tobytes())
        return digest.hexdigest()


def _check(inputs: Any, number: int) -> None:
    if not isinstance(inputs, Mapping) or not inputs:
        raise InputError(f"Ready input {number} is not a mapping of tensors, or an empty one.")
    for name, value in inputs.items():
        if not isinstance(value, Tensor) or value.dim() == 0:
            raise InputError(
                f"'{name}' of ready input {number} is a {type(value).__name__}; give tensors whose "
                "first axis is the batch (return_tensors='pt')."
            )
