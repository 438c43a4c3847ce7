"""What a rule measures of a map: weight in columns, along the diagonal, within a text."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

__all__ = ["Traits", "traits_of"]


class Traits(NamedTuple):
    """One number a map, `[head]`."""

    #: Weight in columns that go through most rows.
    columns: Tensor
    #: Weight near the diagonal beyond what columns put there, of what columns leave.
    diagonal: Tensor
    #: The same within the own text, were it all as dense as off the diagonal; 0 without a pair.
    block: Tensor


def traits_of(
    maps: Tensor,
    special: Tensor,
    segment: Tensor,
    *,
    lift: float = 1.5,
    rows: float = 0.6,
    reach: float = 0.04,
) -> Traits:
    """Measure maps `[head, query, key]` of one text.

    A column stands out where it has `lift` times its even share in the share `rows` of the rows.
    Near the diagonal is one token, or the share `reach` of a long map.

    >>> nothing = torch.zeros(8, dtype=torch.long)
    >>> line = 0.9 * torch.eye(8) + 0.1 / 8
    >>> found = traits_of(line[None], nothing.bool(), nothing)
    >>> found.columns.item(), round(found.diagonal.item(), 2)
    (0.0, 0.59)
    """
    maps = maps.double()
    size = maps.shape[-1]
    # Under a causal mask a column is judged by the rows that can see it.
    seen = _seen(maps)
    usual = _usual(maps, seen, 1 - rows)
    standing = usual * size >= lift
    columns = (maps * standing[:, None]).sum(-1).mean(-1)
    even = (maps * seen).sum(1) / seen.sum(0).clamp_min(1)
    beyond = maps - even[:, None] * seen
    near = _near(size, reach, maps.device) & seen
    left = (1 - columns).clamp_min(1e-6)
    diagonal = (beyond * near).sum((1, 2)) / size / left
    return Traits(columns, diagonal.clamp(0, 1), _block(beyond, near, special, segment, left))


def _seen(maps: Tensor) -> Tensor:
    """Cells `[query, key]` that some head may look at: all, or a triangle."""
    above = torch.triu(torch.ones_like(maps[0], dtype=torch.bool), diagonal=1)
    causal = bool((maps[:, above] < 1e-9).all())
    return ~above if causal else torch.ones_like(above)


def _usual(maps: Tensor, seen: Tensor, quantile: float) -> Tensor:
    """The weight `[head, key]` that a column has in most of its rows; 0 where few rows see it."""
    usual = maps.masked_fill(~seen, torch.nan).nanquantile(quantile, dim=1)
    rare = seen.sum(0) < seen.shape[0] / 2
    return usual.masked_fill(rare, 0.0)


def _near(size: int, reach: float, device: torch.device) -> Tensor:
    places = torch.arange(size, device=device)
    return (places[:, None] - places).abs() <= max(1, round(reach * size))


def _block(beyond: Tensor, near: Tensor, special: Tensor, segment: Tensor, left: Tensor) -> Tensor:
    """How much more, or less, than even stays in the own text; tokens alone, no specials."""
    if not bool((segment > 0).any()):
        return torch.zeros_like(left)
    tokens = ~special.bool()
    same = (segment[:, None] == segment) & tokens[:, None] & tokens
    off = same & ~near
    denser = same.sum() / off.sum().clamp_min(1)
    gained = denser * (beyond * off).sum((1, 2)) / tokens.sum().clamp_min(1)
    return (gained.abs() / left).clamp(0, 1)
