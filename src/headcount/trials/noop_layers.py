"""Gradients by layer and kind of token, with intervals, shares and tests: Clark's figure 3."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from headcount import stats
from headcount.errors import StatsError
from headcount.heads import STACKS
from headcount.models.site import Site
from headcount.stats.results import Floats
from headcount.trials.slopes import CLASSES, Slopes

__all__ = ["layer_frame"]


def layer_frame(slopes: Slopes) -> pd.DataFrame:
    """A row for each layer and kind of token that occurs."""
    sites = sorted(slopes, key=lambda site: (STACKS.index(site.stack), site.layer))
    p = {name: _p_values(slopes, sites, name) for name in CLASSES if name != "other"}
    rows = [
        _row(slopes, site, name, *(found[number] for found in p.get(name) or _untested(sites)))
        for number, site in enumerate(sites)
        for name in CLASSES
    ]
    return pd.DataFrame([row for row in rows if row["texts"]])


def _untested(sites: Sequence[Site]) -> tuple[Floats, Floats]:
    nothing = np.full(len(sites), np.nan)
    return nothing, nothing


def _row(slopes: Slopes, site: Site, name: str, p: float, p_adjusted: float) -> dict[str, Any]:
    own, other = _layer(slopes, site, name), _layer(slopes, site, "other")
    seen = own[~np.isnan(own)]
    value, low, high = stats.mean_interval(seen.sum(), (seen**2).sum(), len(seen))
    both = ~np.isnan(own) & ~np.isnan(other)
    x, n = own[both], other[both]
    share = stats.ratio_interval(x.sum(), n.sum(), x @ x, x @ n, n @ n, len(x), bounds=(0, np.inf))
    mass = slopes.masses(site)[..., CLASSES.index(name)].mean(axis=1)
    return {
        "stack": site.stack, "layer": site.layer, "target": name, "texts": len(seen),
        "gradient": float(value), "low": float(low), "high": float(high),
        "share": float(share.value), "share_low": float(share.low),
        "share_high": float(share.high), "mass": float(np.nanmean(mass)) if len(seen) else np.nan,
        "p": float(p), "p_adjusted": float(p_adjusted),
    }  # fmt: skip


def _layer(slopes: Slopes, site: Site, name: str) -> Floats:
    """The mean over a layer's heads, ``[text]``."""
    return np.asarray(slopes.gradients(site)[..., CLASSES.index(name)].mean(axis=1))


def _p_values(slopes: Slopes, sites: Sequence[Site], name: str) -> tuple[Floats, Floats]:
    """p of "no smaller than on other tokens" for each layer, and with Holm's correction."""
    p = np.full(len(sites), np.nan)
    for number, site in enumerate(sites):
        away = _layer(slopes, site, name) - _layer(slopes, site, "other")
        away = away[~np.isnan(away)]
        try:
            p[number] = stats.sign_flip(away, alternative="less").p
        except StatsError:  # too few texts for an answer
            continue
    return p, stats.holm(p)
