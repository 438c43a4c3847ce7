"""Families outside the interface: scale heads where they enter the output projection."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from torch import Tensor, nn

from headcount.models.entrance import entering
from headcount.models.outside import family_of

if TYPE_CHECKING:
    from headcount.models.anatomy import Anatomy

__all__ = ["scaled_projections"]


@contextmanager
def scaled_projections(
    model: nn.Module, anatomy: Anatomy, multiply: Callable[[nn.Module, Tensor], Tensor]
) -> Iterator[None]:
    """Scale heads of sites whose route is `projection`, for this block.

    `multiply(module, heads)` takes the module of the site and what its heads gave,
    `[batch, query, head, dim]`, and returns as much. Nothing is hung on other models.
    """
    sites = [site for site in anatomy.sites if site.route == "projection"]
    family = family_of(model) if sites else None
    if family is None:
        yield
        return
    heads = {model.get_submodule(site.module): site.heads for site in sites}

    def scale(attention: nn.Module, packed: Tensor) -> Tensor:
        apart = packed.unflatten(-1, (heads[attention], -1))
        return multiply(attention, apart).flatten(-2)

    with entering(heads, family, scale):
        yield
