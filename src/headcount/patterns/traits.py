"""What a rule measures of a map: weight in columns, along the diagonal, within a text."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from headcount.patterns.borders import parts_of

__all__ = ["Traits", "traits_of"]


class Traits(NamedTuple):
    """One number a map, `[head]`."""

    #: Weight in columns that go through most rows.
    columns: Tensor
    #: Weight along a line beyond what columns and blocks put there, of what columns leave.
    diagonal: Tensor
    #: The same within the own text, were it all as dense as off the diagonal; 0 for one text.
    block: Tensor


def traits_of(
    maps: Tensor,
    special: Tensor,
    segment: Tensor | None,
    *,
    lift: float = 1.5,
    rows: float = 0.6,
    reach: float = 0.06,
) -> Traits:
    """Measure maps `[head, query, key]` of one text; where texts meet is looked for if not known.

    A column stands out where it has `lift` times its even share in the share `rows` of the rows.
    A line is one token wide to either side, or the share `reach` of a long map, and lies up to two
    tokens off the diagonal.

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
    beyond = maps - _even(maps, seen)
    left = (1 - columns).clamp_min(1e-6)
    line = _best_line(beyond, seen, max(1, round(reach * size)))
    # A triangle has no squares.
    texts = segment if bool(seen.all()) else torch.zeros_like(special, dtype=torch.long)
    block, dense = _block(beyond, line, special, texts)
    diagonal = ((beyond - dense) * line).sum((1, 2)) / size / left
    return Traits(columns, diagonal.clamp(0, 1), (block / left).clamp(0, 1))


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


def _even(maps: Tensor, seen: Tensor) -> Tensor:
    """What each cell would have if all rows liked the same columns, among those that they see."""
    liked = ((maps * seen).sum(1) / seen.sum(0).clamp_min(1))[:, None] * seen
    return liked / liked.sum(-1, keepdim=True).clamp_min(1e-12)


def _best_line(beyond: Tensor, seen: Tensor, wide: int) -> Tensor:
    """The cells `[head, query, key]` of the line near the diagonal that holds most weight."""
    size = beyond.shape[-1]
    far = min(2, size // 10)
    places = torch.arange(size, device=beyond.device)
    away = places - places[:, None]
    lines = torch.stack([(away - offset).abs() <= wide for offset in range(-far, far + 1)]) & seen
    weight = torch.einsum("hqk,oqk->ho", beyond, lines.to(beyond.dtype))
    return lines[weight.argmax(1)]


def _block(
    beyond: Tensor, line: Tensor, special: Tensor, segment: Tensor | None
) -> tuple[Tensor, Tensor]:
    """How much more, or less, than even stays in the own text, and what a cell there has of it.

    Tokens alone are measured, no specials, and not where the line is, nor the token itself.
    """
    nothing = beyond.new_zeros(len(beyond))
    tokens = ~special.bool()
    cells = tokens[:, None] & tokens
    near = line | torch.eye(len(tokens), dtype=torch.bool, device=line.device)
    if segment is None:
        number = parts_of(beyond * (cells & ~near))
    elif bool((segment != segment[0]).any()):
        number = segment[None]
    else:
        return nothing, nothing[:, None, None]
    same = (number[:, :, None] == number[:, None]) & cells
    off = same & ~near
    cell = (beyond * off).sum((1, 2)) / off.sum((1, 2)).clamp_min(1)
    gained = cell * same.sum((1, 2)) / tokens.sum().clamp_min(1)
    return gained.abs(), cell.clamp_min(0)[:, None, None] * same
