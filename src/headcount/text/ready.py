"""Inputs that the caller prepared: pixels, sound, or token ids of one's own."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, TypeGuard

from torch import Tensor

from headcount.errors import InputError
from headcount.text.account import EncodeReport
from headcount.text.batch import Batch, ready_batch

__all__ = ["Ready", "is_ready"]


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
