"""Where heads enter the output projection, in families outside the attention interface.

There they lie side by side, `[batch, query, head * dim]`, as they do at the seam of the
families inside. A few families turn the axes, and XLNet projects in a method instead of a
module; whoever looks from here sees none of that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from torch import Tensor, nn

from headcount.models.families.outside import Family

__all__ = ["Show", "entering"]

#: Sees the attention module and what its heads gave, `[batch, query, head * dim]`; returns
#: what the projection is to take in.
Show = Callable[[nn.Module, Tensor], Tensor]


@contextmanager
def entering(attentions: Iterable[nn.Module], family: Family, show: Show) -> Iterator[None]:
    """Within the block, `show` sees and replaces what enters each output projection.

    >>> layer = nn.ModuleDict({"out": nn.Linear(2, 1, bias=False)})
    >>> heads = __import__("torch").ones(1, 1, 2)
    >>> with entering([layer], Family("ModuleDict", "out"), lambda module, heads: heads * 0):
    ...     layer["out"](heads).item()
    0.0
    """
    attach = _shadowed if family.method else _hooked
    with ExitStack() as stack:
        for attention in attentions:
            stack.enter_context(attach(attention, family, show))
        yield


@contextmanager
def _hooked(attention: nn.Module, family: Family, show: Show) -> Iterator[None]:
    """Look at the input of the module that projects."""

    def before(_: nn.Module, args: tuple[Any, ...]) -> tuple[Any, ...]:
        return (_shown(attention, args[0], family, show), *args[1:])

    handle = attention.get_submodule(family.projection).register_forward_pre_hook(before)
    try:
        yield
    finally:
        handle.remove()


@contextmanager
def _shadowed(attention: nn.Module, family: Family, show: Show) -> Iterator[None]:
    """Look at the second argument `[query, batch, head, dim]` of the method that projects."""
    name = family.projection
    own = getattr(attention, name)
    outer = vars(attention).get(name)

    def shadow(residual: Tensor, heads: Tensor, *args: Any, **kwargs: Any) -> Any:
        seen = _shown(attention, heads.flatten(2), family, show)
        return own(residual, seen.view_as(heads), *args, **kwargs)

    setattr(attention, name, shadow)
    try:
        yield
    finally:
        delattr(attention, name)
        if outer is not None:
            setattr(attention, name, outer)


def _shown(attention: nn.Module, heads: Tensor, family: Family, show: Show) -> Tensor:
    if not family.time_first:
        return show(attention, heads)
    return show(attention, heads.transpose(0, 1)).transpose(0, 1)
