"""Sizes of gradients by kind of token: for each text, head and kind one mean over cells."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from headcount.models.site import Site
from headcount.stats.results import Floats
from headcount.text.batch import Batch
from headcount.text.side import Side
from headcount.wiring.classes import of_class
from headcount.wiring.weights_gradient import Slope

__all__ = ["CLASSES", "Slopes", "kinds_of_keys", "visible_cells"]

#: Every real token is of one of these kinds.
CLASSES = ("separator", "first", "punctuation", "other")


class Slopes:
    """|dL/dα| and mass by kind of token looked at, kept for each text, whatever the batches."""

    def __init__(self, convention: str = "headcount") -> None:
        self.convention = convention
        #: By site and (text, window): gradients and masses, ``[2, head, kind]``.
        self._found: dict[Site, dict[tuple[int, int], Floats]] = defaultdict(dict)

    def __iter__(self) -> Iterator[Site]:
        return iter(self._found)

    def add(self, slope: Slope, batch: Batch) -> None:
        """Take in one site of one batch."""
        queries, keys = batch.query(slope.site.stack), batch.key(slope.site.stack)
        if queries is None or keys is None:
            return
        kinds = kinds_of_keys(keys.to(slope.weights.device), self.convention)
        cells = visible_cells(slope, queries.real, keys.real)
        sizes = _means(slope.gradient, cells, kinds)
        mass = _masses(slope.weights, queries.real, kinds)
        both = torch.stack([sizes, mass], dim=1).double().cpu().numpy()
        windows = batch.window or [0] * len(batch)
        for own, values in zip(zip(batch.index, windows, strict=True), both, strict=True):
            self._found[slope.site][own] = values

    def gradients(self, site: Site) -> Floats:
        """``[text, head, kind]``; NaN where a text has no token of the kind."""
        return self._texts(site)[:, 0]

    def masses(self, site: Site) -> Floats:
        """The mean mass on each kind, ``[text, head, kind]``."""
        return self._texts(site)[:, 1]

    def _texts(self, site: Site) -> Floats:
        found = self._found[site]
        return np.stack([found[own] for own in sorted(found)])


def kinds_of_keys(keys: Side, convention: str) -> Tensor:
    """Which kind each key is of, bool ``[batch, kind, key]``; padding is of none."""
    own = "punctuation" if convention == "headcount" else "stops"
    separator = of_class(keys, "separator")
    first = of_class(keys, "first") & ~separator
    if convention == "paper":  # the text tells separators, stops and other tokens apart
        first = torch.zeros_like(first)
    marks = of_class(keys, own) & ~first & ~separator
    other = keys.real & ~(separator | first | marks)
    return torch.stack([separator, first, marks, other], dim=1)


def visible_cells(slope: Slope, queries: Tensor, keys: Tensor) -> Tensor:
    """Cells of real tokens that the query may see, bool ``[batch, query, key]``.

    A weight that the attention mask holds at 0 has a gradient too, but nothing can change it.
    """
    device = slope.weights.device
    cells = queries.to(device)[:, :, None] & keys.to(device)[:, None, :]
    mask = slope.mask
    if mask is not None and mask.dim() == 4:
        allowed = mask if mask.dtype == torch.bool else mask > torch.finfo(mask.dtype).min / 2
        return cells & allowed[:, 0, :, : cells.shape[-1]]
    return cells.tril() if slope.site.causal else cells


def _means(gradient: Tensor, cells: Tensor, kinds: Tensor) -> Tensor:
    """Mean size over the cells of each kind, ``[batch, head, kind]``; NaN where there is none."""
    sizes = (gradient.abs().float() * cells[:, None]).sum(dim=2, dtype=torch.float64)
    members = kinds.double().transpose(1, 2)
    count = cells.sum(dim=1).double()[:, None] @ members
    return torch.where(count > 0, sizes @ members / count.clamp_min(1), torch.nan)


def _masses(weights: Tensor, queries: Tensor, kinds: Tensor) -> Tensor:
    """Mean mass of a row on each kind, ``[batch, head, kind]``."""
    rows = queries.to(weights.device)[:, None, :, None]
    received = (weights.float() * rows).sum(dim=2, dtype=torch.float64)
    count = rows.sum(dim=2).double()
    return received @ kinds.double().transpose(1, 2) / count.clamp_min(1)
