"""Probes side by side: the mean over seeds, with what sentences and what seeds make uncertain."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from headcount.probes.measure import uas
from headcount.probes.settings import KINDS
from headcount.stats import mean_interval

__all__ = ["result_row", "summary"]

Hits = Mapping[tuple[str, int], NDArray[np.int64]]


def result_row(kind: str, seed: int, found: NDArray[np.int64], **about: Any) -> dict[str, Any]:
    """One row of the frame `probes`."""
    value, low, high = uas(found)
    return {
        "probe": kind,
        "uas": float(value),
        "low": float(low),
        "high": float(high),
        "seed": seed,
        "n": int(found[:, 1].sum()),
        "sentences": len(found),
        **about,
    }


def summary(hits: Hits) -> pd.DataFrame:
    """A row a probe, the expected best last.

    `low` and `high`: the bootstrap over sentences of the mean over seeds; `seed_low` and
    `seed_high`: Student's interval over seeds, NaN with one seed.

    >>> one, two = np.array([[1, 2], [2, 2]]), np.array([[2, 2], [2, 2]])
    >>> summary({("attention", 0): one, ("attention", 1): two})["uas"].tolist()
    [0.875]
    """
    rows = []
    for kind in (one for one in KINDS if any(one == name for name, _ in hits)):
        found = [each for (name, _), each in hits.items() if name == kind]
        value, low, high = uas(np.mean(found, axis=0))
        each = np.array([one[:, 0].sum() / max(one[:, 1].sum(), 1) for one in found])
        _, seed_low, seed_high = mean_interval(each.sum(), each @ each, len(each), bounds=(0, 1))
        ends = {"low": low, "high": high, "seed_low": seed_low, "seed_high": seed_high}
        numbers = {name: float(end) for name, end in {"uas": value, **ends}.items()}
        rows.append({"probe": kind, **numbers, "seeds": len(found), "n": int(found[0][:, 1].sum())})
    return pd.DataFrame(rows)
