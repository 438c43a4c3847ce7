"""Maps of any size as pictures of one size, so that one network can look at all of them."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["CHANNELS", "SIDE", "pictures", "shrink"]

#: Pixels of a side.
SIDE = 32
#: Ink, weight against even attention, the same beyond the columns' means, columns of specials, own
#: text of a pair, distance from the diagonal.
CHANNELS = 6

#: The weight that is drawn as full ink: this quantile of the picture, as a viewer would scale it.
_FULL = 0.99
#: The lift of a map that puts all its weight on a column as wide as a pixel.
_MOST = float(torch.log1p(torch.tensor(float(SIDE))))


def pictures(maps: Tensor, special: Tensor, segment: Tensor | None) -> Tensor:
    """Maps `[head, query, key]` of one text as `[head, channel, pixel, pixel]`.

    Areas are averaged, so a line or a column stays where it was, whatever the size. `special` and
    `segment` are `[key]`: places the tokenizer added, and the number of the text that a token
    belongs to, where that is known.

    >>> eye = torch.eye(64)[None]
    >>> drawn = pictures(eye, torch.zeros(64, dtype=torch.bool), torch.zeros(64, dtype=torch.long))
    >>> drawn.shape, drawn[0, 0].diagonal().min().item()
    (torch.Size([1, 6, 32, 32]), 1.0)
    """
    size = maps.shape[-1]
    area = shrink(size, maps.device)
    seen = area @ maps.float() @ area.T
    full = seen.flatten(1).quantile(_FULL, dim=1).clamp_min(1e-9)[:, None, None]
    ink = (seen / full).clamp(0, 1).sqrt()
    lift = (size * seen).clamp_min(0).log1p() / _MOST
    beyond = lift - lift.mean(1, keepdim=True)
    marks = _marks(area, special, segment).expand(len(maps), -1, -1, -1)
    return torch.cat([torch.stack([ink, lift, beyond], dim=1), marks], dim=1)


def shrink(size: int, device: torch.device | str = "cpu") -> Tensor:
    """The shares `[pixel, token]` that tokens have in pixels; rows add up to 1.

    >>> shrink(64)[0, :3].tolist()
    [0.5, 0.5, 0.0]
    """
    edges = torch.arange(SIDE + 1, dtype=torch.float64) * size / SIDE
    places = torch.arange(size, dtype=torch.float64)
    start = torch.maximum(edges[:-1, None], places)
    stop = torch.minimum(edges[1:, None], places + 1)
    shares = (stop - start).clamp_min(0) * SIDE / size
    return shares.float().to(device)


def _marks(area: Tensor, special: Tensor, segment: Tensor | None) -> Tensor:
    """Where specials stand, which cells belong to one text of a pair, how far the diagonal is."""
    columns = (area @ special.float()).expand(SIDE, SIDE)
    same = torch.zeros_like(columns)
    if segment is not None and bool((segment != segment[0]).any()):
        same = area @ (segment[:, None] == segment).float() @ area.T
    pixels = torch.arange(SIDE, device=area.device)
    away = (pixels[:, None] - pixels).abs() / SIDE
    return torch.stack([columns, same, away])
