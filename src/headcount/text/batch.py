"""A batch: what the model's forward takes, and what is known of its tokens."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from headcount.errors import InputError
from headcount.text.side import Side, bare_side

__all__ = ["SIDES", "Batch", "ready_batch"]

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
        inputs = {
            name: tensor.to(device, non_blocking=True) for name, tensor in self.inputs.items()
        }
        sides = {name: side.to(device) for name, side in self.sides.items()}
        labels = None if self.labels is None else self.labels.to(device, non_blocking=True)
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
