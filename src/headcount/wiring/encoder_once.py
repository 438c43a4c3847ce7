"""An encoder that runs once: whatever changes in the decoder, what it reads stays the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

from torch import Tensor
from torch.utils._pytree import tree_map

from headcount.subject import Subject
from headcount.wiring.recorded_run import copied
from headcount.wiring.takeover import Forward, taken_over

__all__ = ["EncoderOnce"]

T = TypeVar("T")


class EncoderOnce:
    """Reads a batch once and hands out what came of it; within `opened()` only."""

    def __init__(self, subject: Subject) -> None:
        self._encoder = subject.inner.get_encoder()
        self._read: Any = None
        self._rows = 0
        self._copies = 0

    @contextmanager
    def opened(self) -> Iterator[EncoderOnce]:
        """Stand in for the encoder for this block."""
        try:
            with taken_over({self._encoder: self._take}):
                yield self
        finally:
            self._read = None

    def read(self, inputs: Mapping[str, Tensor]) -> None:
        """Run the encoder as `generate` does, and keep what it gives."""
        ids, real = inputs["input_ids"], inputs["attention_mask"]
        self._rows = len(ids)
        self._read = self._encoder(input_ids=ids, attention_mask=real, return_dict=True)

    def reuse(self, run: Callable[[], T], copies: int) -> T:
        """Run on so many copies of the batch that was read, one below the other."""
        self._copies = copies
        try:
            return run()
        finally:
            self._copies = 0

    def _take(self, own: Forward) -> Forward:
        def forward(*args: Any, **kwargs: Any) -> Any:
            if not self._copies:
                return own(*args, **kwargs)
            return _anew(copied(self._read, self._rows, self._copies))

        return forward


def _anew(output: Any) -> Any:
    """The same tensors in a new container: beam search multiplies rows within the one it gets."""
    return tree_map(lambda part: part, output)
