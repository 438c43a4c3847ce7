"""Save a cut model at its old size, with zeros where heads were: any program can load that."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import torch
from torch import Tensor, nn

from headcount.errors import UsageError
from headcount.models.anatomy import sites_of
from headcount.models.head_numbers import KEY, heads_left
from headcount.models.projections import Place, places_of
from headcount.models.site import Site

__all__ = ["filled_with_zeros"]

_TABLE = "relative_attention_bias.weight"


def filled_with_zeros(model: Any) -> Any:
    """The whole model that gives what the cut one gives: removed heads are there, and give 0."""
    left = heads_left(model.config)
    if left is None:
        raise UsageError("No head was removed from this model, so there is nothing to fill.")
    whole = _built_whole(model)
    cut, full = dict(model.named_parameters()), dict(whole.named_parameters())
    with torch.no_grad():
        for name, value in full.items():
            if name in cut and cut[name].shape == value.shape:
                value.copy_(cut[name])
        for name, buffer in whole.named_buffers():
            buffer.copy_(model.get_buffer(name))
        for site in sites_of(whole):
            for place in places_of(whole, site):
                _fill(cut, full, place, _kept(site, place, left))
        _fill_tables(model, full, sites_of(whole), left)
    return whole.eval()


def _built_whole(model: Any) -> Any:
    config = deepcopy(model.config)
    delattr(config, KEY)
    with torch.random.fork_rng(devices=[]):
        return type(model)(config).to(device=model.device, dtype=model.dtype)


def _kept(site: Site, place: Place, left: dict[str, list[int]]) -> Tensor:
    """Which entries of a whole weight the cut one still has."""
    numbers = left[f"{site.stack}.{site.layer}"]
    queries = torch.zeros(site.heads, dtype=torch.bool)
    queries[numbers] = True
    return place.kept(queries, queries.view(site.kv_heads, -1).any(1))


def _fill(cut: dict[str, Tensor], full: dict[str, Tensor], place: Place, kept: Tensor) -> None:
    """Zeros, and what was kept in its old place; a dead head has nothing to give."""
    if place.name.endswith(_TABLE):
        return  # see below
    value = full[place.name].zero_()
    if len(kept):
        value.index_copy_(place.axis, kept.to(value.device), cut[place.name])


def _fill_tables(
    model: nn.Module, full: dict[str, Tensor], sites: list[Site], left: dict[str, list[int]]
) -> None:
    """T5: the one table of a stack gets each head's column from a layer that still has it."""
    cut = dict(model.named_parameters())
    for name in [name for name in full if name.endswith(_TABLE)]:
        stack = next(site.stack for site in sites if name.startswith(f"{site.module}."))
        full[name].zero_()
        seen: dict[int, Tensor] = {}
        for site in (site for site in sites if site.stack == stack):
            table = cut.get(f"{site.module}.{_TABLE}")
            numbers = left[f"{site.stack}.{site.layer}"]
            for place, number in enumerate(numbers if table is not None else ()):
                column = table[:, place]  # type: ignore[index]
                if number in seen and not torch.equal(seen[number], column):
                    raise UsageError(
                        f"The layers of '{stack}' were trained apart since heads were removed, and "
                        "a whole model has one position bias for all; save it without export."
                    )
                seen[number] = column
                full[name][:, number] = column
