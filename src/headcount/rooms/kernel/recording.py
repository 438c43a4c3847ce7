"""Passes over batches of one shape, recorded as CUDA graphs and replayed.

Short texts leave a GPU idle while Python goes from layer to layer. A pass that was recorded once is
replayed by one call: a batch is copied to where the first one lay, and the rows are copied from
where its rows came out. A recording is held against a pass as it comes before it is trusted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves, tree_map

from headcount.models import Subject
from headcount.text import Batch
from headcount.wiring import Asked

#: A shape is recorded when it comes for this time: recording costs about as much as so many passes.
_WORTH = 4

#: As many shapes as are recorded: each takes the memory of its rows.
_MOST = 8

#: The mean difference of a row quantity that is put down to other kernels for the same products.
_TOLERANCE = 1e-3

#: Runs a batch, whose rows are full or not, and gives what waits to be shown (`taps._Waiting`).
Run = Callable[[Batch, Mapping[str, Asked], None, Callable[..., None], bool], list[Any]]

#: Records what a function does and gives its answer, and how to have it done again.
Capture = Callable[[Callable[[], list[Any]]], tuple[list[Any], Callable[[], None]]]


class Recordings:
    """The recordings of one tap, by the shape of the batch and what is asked of it."""

    def __init__(self, subject: Subject, run: Run) -> None:
        self._run, self._capture = run, _captured(subject)
        self._came: Counter[Any] = Counter()
        self._made: dict[Any, _Recording] = {}

    def key(self, batch: Batch, asked: Mapping[str, Asked], full: bool) -> Any:
        """What two passes have in common that may be one recording; None: this is none.

        Rows that are drawn differ from text to text, and words are shown batch by batch.
        """
        if self._capture is None or _varied(batch, asked):
            return None
        left_out = {
            stack: tuple(kept is None for kept in one.allowed.values())
            for stack, one in asked.items()
        }
        return (
            full,
            tuple((name, part.shape, part.dtype) for name, part in batch.inputs.items()),
            tuple((name, side.ids.shape, side.annotated) for name, side in batch.sides.items()),
            tuple(left_out.items()),  # part of the kernel
        )

    def forget(self) -> None:
        """Free the memory of all recordings."""
        self._made.clear()
        self._capture = None

    def replayed(self, key: Any, batch: Batch, asked: Mapping[str, Asked]) -> list[Any] | None:
        """The rows of a batch by its recording; None where there is none."""
        recording = self._made.get(key)
        return None if recording is None else recording(batch, asked)

    def offer(self, key: Any, batch: Batch, asked: Mapping[str, Asked], rows: list[Any]) -> None:
        """Record a pass that has come often enough, unless it gives other rows than these."""
        self._came[key] += 1
        if self._came[key] != _WORTH or len(self._made) >= _MOST or self._capture is None:
            return
        where = _copied(batch)
        try:
            found, again = self._capture(lambda: self._run(where, asked, None, _never, key[0]))
            made = _Recording(_tensors(where), found, again)
            if _like(made(batch, asked), rows):
                self._made[key] = made
        except (RuntimeError, LookupError, TypeError, ValueError):
            self._capture = None  # this model waits for its device, or runs on several


def _never(sighting: Any) -> None:
    """Takes what is shown before the end of a pass: nothing, of as few rows as are recorded."""
    raise RuntimeError("rows were shown while they were recorded")


@dataclass(frozen=True)
class _Recording:
    """Where a batch must lie, where its rows come out, and how to make them."""

    into: list[Tensor]
    out: list[Any]
    again: Callable[[], None]

    def __call__(self, batch: Batch, asked: Mapping[str, Asked]) -> list[Any]:
        torch._foreach_copy_(self.into, _tensors(batch))
        self.again()
        return [self._taken(one, batch, asked[one.site.stack]) for one in self.out]

    def _taken(self, one: Any, batch: Batch, asked: Asked) -> Any:
        queries, keys = batch.query(one.site.stack), batch.key(one.site.stack)
        assert queries is not None
        assert keys is not None
        what = tree_map(lambda part: part if part is None else part.clone(), one.what)
        own = replace(asked, queries=queries, keys=keys)
        return one._replace(asked=own, visible=one.visible.clone(), what=what)


def _varied(batch: Batch, asked: Mapping[str, Asked]) -> bool:
    """Whether something besides the batch's inputs and sides differs from batch to batch."""
    drawn = any(one.places is not None for one in asked.values())
    words = any(side.words is not None for side in batch.sides.values())
    return drawn or words or not batch.sides


def _tensors(batch: Batch) -> list[Tensor]:
    """All that a pass reads of a batch."""
    sides = [getattr(side, name) for side in batch.sides.values() for name in side.parts]
    return [*batch.inputs.values(), *sides]


def _copied(batch: Batch) -> Batch:
    """The batch in memory of its own."""
    inputs = {name: part.clone() for name, part in batch.inputs.items()}
    sides = {
        stack: replace(side, **{name: getattr(side, name).clone() for name in side.parts})
        for stack, side in batch.sides.items()
    }
    return replace(batch, inputs=inputs, sides=sides)


def _like(ours: Sequence[Any], theirs: Sequence[Any]) -> bool:
    """Whether two passes gave the same rows, but for rounding; the keys of near ties may differ."""
    found: list[list[Tensor]] = [
        [part for one in own for part in tree_leaves((one.visible.double(), one.what))]
        for own in (ours, theirs)
    ]
    off = [
        (one - other).abs().mean()
        for one, other in zip(*found, strict=True)
        if one is not None and one.is_floating_point()
    ]
    return bool(torch.stack(off).amax() <= _TOLERANCE)


def _captured(subject: Subject) -> Capture | None:
    """Recording on the subject's device; None where that cannot be done."""
    if subject.device.type != "cuda":
        return None
    modules = list(subject.model.modules())
    hooked = any(m._forward_hooks or m._forward_pre_hooks for m in modules)
    places = {parameter.device for parameter in subject.model.parameters()}
    if hooked or len(places) != 1:
        return None
    how: dict[str, Any] = {
        "pool": torch.cuda.graph_pool_handle(),  # one for all: they never run at the same time
        "capture_error_mode": "thread_local",
    }

    def capture(work: Callable[[], list[Any]]) -> tuple[list[Any], Callable[[], None]]:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.device(subject.device), torch.cuda.graph(graph, **how):
            found = work()
        return found, graph.replay

    return capture
