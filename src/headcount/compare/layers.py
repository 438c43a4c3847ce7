"""Which layers change most: each against the others, text by text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from headcount import stats
from headcount.compare.likeness import Likeness
from headcount.compare.matching import Matched
from headcount.errors import StatsError

__all__ = ["layer_changes"]

_COLUMNS = [
    "stack", "layer", "heads", "texts", "cosine", "cosine_low", "cosine_high", "js", "js_low",
    "js_high", "more", "p", "p_adjusted",
]  # fmt: skip


def layer_changes(matches: Sequence[Matched], found: Likeness) -> pd.DataFrame:
    """A row a layer: mean cosine and divergence of its heads, with intervals over texts.

    `more` is 1 - cosine less the mean of the stack's other layers: above 0, the layer changes more
    than they do. `p` is of a sign-flip test over texts, `p_adjusted` corrected over a stack's
    layers (Holm).
    """
    rows: list[dict[str, Any]] = []
    for stack in dict.fromkeys(match.first.stack for match in matches):
        rows += _of_stack([match for match in matches if match.first.stack == stack], found)
    return pd.DataFrame(rows, columns=_COLUMNS)


def _of_stack(matches: Sequence[Matched], found: Likeness) -> list[dict[str, Any]]:
    means = {
        name: np.stack([found.texts(match, name).mean(1) for match in matches], axis=1)
        for name in ("cosine", "js")
    }
    tested = _against_others(1 - means["cosine"])
    told = []
    for place, match in enumerate(matches):
        row: dict[str, Any] = {"stack": match.first.stack, "layer": match.first.layer}
        row |= {"heads": len(match.heads), "texts": len(means["js"])}
        for name, values in means.items():
            one = values[:, place]
            ends = stats.mean_interval(one.sum(), (one**2).sum(), len(one))
            row |= dict(zip((name, f"{name}_low", f"{name}_high"), map(float, ends), strict=True))
        told.append(row | {name: float(values[place]) for name, values in tested.items()})
    return told


def _against_others(changes: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
    """How much more each layer changes than the mean of the others, and how sure that is."""
    layers = changes.shape[1]
    nothing = np.full(layers, np.nan)
    if layers < 2:
        return {"more": nothing, "p": nothing, "p_adjusted": nothing}
    others = (changes.sum(1, keepdims=True) - changes) / (layers - 1)
    apart = changes - others
    try:
        tested = stats.sign_flip(apart)
    except StatsError:  # too few texts for a test; the figure itself stands
        return {"more": apart.mean(0), "p": nothing, "p_adjusted": nothing}
    return {"more": apart.mean(0), "p": tested.p, "p_adjusted": tested.p_adjusted}
