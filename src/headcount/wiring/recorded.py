"""Maps from the model's own `output_attentions`, for families outside the interface."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch import Tensor

from headcount.errors import ModelError
from headcount.models.outside import window_of
from headcount.models.own_maps import own_maps
from headcount.models.site import Site
from headcount.subject import Subject
from headcount.text.batch import Batch

__all__ = ["recorded_maps"]


def recorded_maps(
    subject: Subject, batch: Batch, arguments: dict[str, Any]
) -> Iterator[tuple[Site, Tensor, Tensor | None]]:
    """Run the batch; yield the maps `[batch, head, query, key]` that the seam cannot see.

    Beside each map comes the attention mask, where it is more than padding and causality.
    The maps of all layers are held until the forward ends, since these families hand them
    over together; each is let go as soon as the next one is asked for.
    """
    sites = [site for site in subject.anatomy.sites if site.route == "projection"]
    if not sites:
        subject.model(**batch.inputs, **arguments)
        return
    found = own_maps(subject.model, batch.inputs | arguments)
    stacks = {site.stack for site in sites}
    waiting = {
        stack: found.of(stack, sum(site.stack == stack for site in sites)) for stack in stacks
    }
    del found
    for site in sites:
        maps = waiting[site.stack].pop(0)
        _check_shape(subject, site, maps, batch)
        yield site, maps, window_of(subject.model, site, maps)


def _check_shape(subject: Subject, site: Site, maps: Tensor, batch: Batch) -> None:
    query, key = batch.query(site.stack), batch.key(site.stack)
    wanted = [maps.shape[0], site.heads, *maps.shape[2:]]
    if query is not None:
        wanted[0], wanted[2] = query.real.shape
    if key is not None:
        wanted[3] = key.real.shape[1]
    if list(maps.shape) != wanted:
        raise ModelError(
            f"{type(subject.model).__name__} gave an attention map of shape {list(maps.shape)} at "
            f"{site.stack}.{site.layer}, not {wanted} as [batch, head, query, key]."
        )
