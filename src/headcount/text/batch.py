"""A batch: what the model is fed, and what each token of it is."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

__all__ = ["Batch", "Side"]


@dataclass(frozen=True)
class Side:
    """One side of a batch (source or target); every tensor is `[batch, token]`.

    `special` are the tokens that the tokenizer added, `separator` those of them that end or
    part sentences; `punctuation` is any Unicode punctuation, `stops` exactly "." and ",".
    """

    ids: Tensor
    real: Tensor
    special: Tensor
    separator: Tensor
    punctuation: Tensor
    stops: Tensor
    tokens: list[list[str]] = field(default_factory=list)

    @classmethod
    def plain(cls, rows: int, length: int, device: torch.device | str = "cpu") -> Side:
        """A side of which nothing is known but its length: image patches, audio frames."""
        none = torch.zeros(rows, length, dtype=torch.bool, device=device)
        return cls(none.long(), ~none, none, none, none, none)

    @property
    def first(self) -> Tensor:
        """True at the first real token of each row."""
        return self.real & (self.real.cumsum(-1) == 1)

    def of_class(self, name: str) -> Tensor:
        """True at real tokens of a class: first, separator, punctuation, stops, special."""
        found: Tensor = getattr(self, name)
        return found & self.real

    def to(self, device: torch.device | str) -> Side:
        """The same side on a device."""
        moved = {name: value.to(device) for name, value in vars(self).items() if name != "tokens"}
        return replace(self, **moved)


@dataclass(frozen=True)
class Batch:
    """Model inputs, the sides of text behind them, and which inputs of the corpus they are."""

    inputs: dict[str, Tensor]
    sides: dict[str, Side]
    index: list[int] = field(default_factory=list)

    def to(self, device: torch.device | str) -> Batch:
        """The same batch on a device."""
        inputs = {name: value.to(device) for name, value in self.inputs.items()}
        return replace(self, inputs=inputs, sides={n: s.to(device) for n, s in self.sides.items()})

    def sides_of(self, stack: str, shape: torch.Size) -> tuple[Side, Side]:
        """The side that asks and the side that answers in a stack's maps `[.., query, key]`."""
        asking, answering = _SIDES[stack]
        rows, queries, keys = shape[0], shape[-2], shape[-1]
        device = next(iter(self.inputs.values())).device
        return (
            self.sides.get(asking) or Side.plain(rows, queries, device),
            self.sides.get(answering) or Side.plain(rows, keys, device),
        )


#: Which side asks and which answers, by stack.
_SIDES = {"enc": ("source", "source"), "dec": ("target", "target"), "cross": ("target", "source")}
