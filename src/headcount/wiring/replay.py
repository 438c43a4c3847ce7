"""Gradient checkpointing: a recompute must see what its own forward saw.

A checkpointed segment runs twice, the second time inside `backward`, in reverse order of
layers. What the first run used is written down per segment and handed out again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from torch import nn

from headcount.errors import UsageError

__all__ = ["Replay"]

T = TypeVar("T")

_FUNCTION = "_gradient_checkpointing_func"


@dataclass
class _Segment(Generic[T]):
    notes: list[T] = field(default_factory=list)
    done: bool = False


class Replay(Generic[T]):
    """Notes taken during checkpointed segments and replayed when they are recomputed."""

    def __init__(self) -> None:
        self._open = False
        self._segment: _Segment[T] | None = None
        self._pending: Iterator[T] | None = None

    def note(self, make: Callable[[], T]) -> T:
        """What to use for this attention call: new in a forward, as before in a recompute."""
        if self._pending is not None:
            return next(self._pending)
        made = make()
        if self._segment is not None:
            self._segment.notes.append(made)
        return made

    @contextmanager
    def watching(self, model: nn.Module) -> Iterator[None]:
        """Follow every checkpointed segment of the model for this block."""
        before = [
            (module, vars(module)[_FUNCTION])
            for module in model.modules()
            if _FUNCTION in vars(module)
        ]
        self._open = True
        try:
            for module, function in before:
                setattr(module, _FUNCTION, self._followed(function))
            yield
        finally:
            self._open = False
            for module, function in before:
                setattr(module, _FUNCTION, function)

    def _followed(self, checkpoint: Callable[..., Any]) -> Callable[..., Any]:
        def follow(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
            segment: _Segment[T] = _Segment()

            def run(*inner: Any, **named: Any) -> Any:
                with self._playing(segment):
                    return function(*inner, **named)

            return checkpoint(run, *args, **kwargs)

        return follow

    @contextmanager
    def _playing(self, segment: _Segment[T]) -> Iterator[None]:
        outer = self._segment, self._pending
        if segment.done:
            self._check_open()
            self._segment, self._pending = None, iter(segment.notes)
        else:
            self._segment, self._pending = segment, None
        try:
            yield
        finally:
            segment.done = True
            self._segment, self._pending = outer

    def _check_open(self) -> None:
        if not self._open:
            raise UsageError(
                "The valve was closed before backward(), and gradient checkpointing needs it again "
                "to recompute the forward; call backward() inside the `with valve(...)` block."
            )
