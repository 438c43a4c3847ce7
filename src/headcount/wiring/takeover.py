"""Put another function in the place of a module's forward, and the old one back on any exit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import update_wrapper
from typing import Any

from torch import nn

__all__ = ["Forward", "taken_over"]

Forward = Callable[..., Any]
#: Makes the new forward from the old one.
Take = Callable[[Forward], Forward]

_NAME = "forward"


@contextmanager
def taken_over(forwards: Mapping[nn.Module, Take]) -> Iterator[None]:
    """Within the block each module runs the forward that its `Take` makes from its own.

    >>> layer = nn.Identity()
    >>> with taken_over({layer: lambda own: lambda x: own(x) + 1}):
    ...     layer(1)
    2
    >>> layer(1)
    1
    """
    with ExitStack() as stack:
        for module, take in forwards.items():
            stack.callback(_put_back, module, vars(module).get(_NAME))
            own = getattr(module, _NAME)
            # Wrapped, since transformers reads from a forward's signature what it takes.
            setattr(module, _NAME, update_wrapper(take(own), own))
        yield


def _put_back(module: nn.Module, before: Forward | None) -> None:
    """An attribute of the module's own (an offloading hook) comes back; else the class's method."""
    vars(module).pop(_NAME, None)
    if before is not None:
        setattr(module, _NAME, before)
