"""What a tap shows of one site for one batch."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from headcount.models.site import Site
from headcount.text.batch import Batch
from headcount.text.side import Side, bare_side
from headcount.wiring import rows
from headcount.wiring.classes import of_class
from headcount.wiring.needs import Needs

__all__ = ["Sighting", "look"]


@dataclass(frozen=True)
class Sighting:
    """Quantities of one site's map `[batch, head, query, key]`, as far as they were asked for.

    `queries` and `keys` are the text sides the rows and columns stand for. Rows of padding
    hold no meaning: weigh by `queries.real`.
    """

    site: Site
    batch: Batch
    queries: Side
    keys: Side
    visible: Tensor
    maps: Tensor | None = None
    entropy: Tensor | None = None
    smoothed_entropy: Tensor | None = None
    tops: dict[frozenset[str], tuple[Tensor, Tensor]] = field(default_factory=dict)
    masses: dict[str, Tensor] = field(default_factory=dict)
    offsets: dict[int, Tensor] = field(default_factory=dict)


def look(site: Site, maps: Tensor, mask: Tensor | None, batch: Batch, needs: Needs) -> Sighting:
    """Reduce a map to what is needed; statistics of half-precision maps are taken in float32."""
    asking = _beside(maps, batch.query(site.stack)) or _unknown_side(maps, -2)
    answering = _beside(maps, batch.key(site.stack)) or _unknown_side(maps, -1)
    maps = maps.detach()
    exact = maps if maps.dtype in (torch.float32, torch.float64) else maps.float()
    return Sighting(
        site=site,
        batch=batch,
        queries=asking,
        keys=answering,
        visible=rows.visible_keys(mask, exact.shape[-2], answering.real, site.causal),
        maps=exact if needs.maps else None,
        entropy=rows.entropy(exact) if needs.entropy else None,
        smoothed_entropy=_smoothed(exact, needs, answering),
        tops={left_out: _top(exact, left_out, answering) for left_out in needs.tops},
        masses=_masses(exact, needs, answering),
        offsets={offset: rows.at_offset(exact, offset) for offset in sorted(needs.offsets)},
    )


def _beside(maps: Tensor, side: Side | None) -> Side | None:
    """The side on the device of the map: a model's layers may be spread over several."""
    if side is None or side.real.device == maps.device:
        return side
    return side.to(maps.device)


def _unknown_side(maps: Tensor, axis: int) -> Side:
    """A side of which only the map knows how long it is: image patches, audio frames."""
    real = torch.ones(maps.shape[0], maps.shape[axis], dtype=torch.bool, device=maps.device)
    return bare_side(real.long(), real)


def _smoothed(maps: Tensor, needs: Needs, keys: Side) -> Tensor | None:
    if needs.smoothed is None:
        return None
    return rows.smoothed_entropy(maps, needs.smoothed, keys.real)


def _top(maps: Tensor, left_out: frozenset[str], keys: Side) -> tuple[Tensor, Tensor]:
    allowed = keys.real
    for name in left_out:
        allowed = allowed & ~of_class(keys, name)
    return rows.top(maps, allowed)


def _masses(maps: Tensor, needs: Needs, keys: Side) -> dict[str, Tensor]:
    if not needs.masses:
        return {}
    names = sorted(needs.masses)
    classes = torch.stack([of_class(keys, name) for name in names], dim=1)
    found = rows.class_masses(maps, classes)
    return {name: found[..., place] for place, name in enumerate(names)}
