"""Choices of heads against rules that know no model: accuracies, intervals, tests, on two splits.

As for relations, heads are chosen on one half of the texts (`select`) and judged on the other
(`report`); the naive figure over both stands beside them (`all`). A text is a whole document where
passages name theirs: mentions of one document are right or wrong together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from headcount import stats
from headcount.errors import StatsError
from headcount.stats.whole_flips import sign_flip_counts
from headcount.tallies.relation_counts import Counts, RelationCounts, Unit
from headcount.tallies.relation_figures import SPLITS, in_selection

__all__ = ["ChoiceTest", "choice_frame"]

Floats = NDArray[np.float64]
Rows = NDArray[np.bool_]


@dataclass(frozen=True)
class ChoiceTest:
    """How accuracies are judged.

    The null hypothesis: on `report`, the head is right no more often than the baseline, paired by
    text (exact sign flips). Holm corrects over all heads and kinds of a baseline, with
    Benjamini-Hochberg beside it.
    """

    #: Kinds with fewer questions are shown and not tested.
    support: int = 30
    level: float = 0.05
    draws: int = 2000
    confidence: float = 0.95
    #: Of the split and of the draws.
    seed: int = 0


def choice_frame(
    counts: Sequence[RelationCounts],
    test: ChoiceTest,
    *,
    direction: str,
    kinds: Sequence[str],
    baselines: Sequence[str],
) -> pd.DataFrame:
    """A row for each head, kind, baseline and split that has questions."""
    blocks = [
        {**_heads(one), "kind": kind, **figures}
        for one in counts
        for kind in kinds
        for figures in _splits(one.of(kind, direction), one.units, baselines, test)
    ]
    frame = pd.concat([pd.DataFrame(block) for block in blocks], ignore_index=True)
    return _corrected(frame, test)


def _heads(counts: RelationCounts) -> dict[str, Any]:
    stack, layer, head = zip(*counts.heads, strict=True)
    return {"stack": stack, "layer": layer, "head": head}


def _splits(
    found: Counts, units: Sequence[Unit], baselines: Sequence[str], test: ChoiceTest
) -> Iterator[dict[str, Any]]:
    """The figures of one kind on each split, once for each baseline."""
    chosen = in_selection(units, test.seed)[found.unit]
    best = found.hits[chosen].sum(axis=0).argmax() if chosen.any() else None
    every = np.ones_like(chosen)
    for split, rows in zip(SPLITS, (chosen, ~chosen, every), strict=True):
        if rows.any():
            selected = np.arange(found.hits.shape[1]) == best if split != "all" else False
            common = {"split": split, **_figures(found, rows, test), "selected": selected}
            tested = split == "report" and int(found.arcs.sum()) >= test.support
            for place, name in enumerate(baselines):
                yield common | _against(found, rows, place, name, tested)


def _figures(found: Counts, rows: Rows, test: ChoiceTest) -> dict[str, Any]:
    n, hits = found.arcs[rows], found.hits[rows]
    low = high = np.full(hits.shape[1], np.nan)
    if len(n) >= 2:
        pairs = np.stack([hits, np.broadcast_to(n[:, None], hits.shape)], axis=-1)
        _, low, high = stats.bootstrap_interval(
            pairs, draws=test.draws, confidence=test.confidence, seed=test.seed
        )
    accuracy = hits.sum(axis=0) / n.sum()
    about = {"n": int(n.sum()), "texts": int(rows.sum())}
    return about | {"accuracy": accuracy, "low": low, "high": high}


def _against(found: Counts, rows: Rows, place: int, name: str, tested: bool) -> dict[str, Any]:
    """One baseline's accuracy, and each head's p against it."""
    n, theirs = found.arcs[rows], found.offsets[rows, place]
    p: Floats | float = np.nan
    if tested and rows.sum() >= 2:
        p = sign_flip_counts(found.hits[rows] - theirs[:, None], alternative="greater")
    return {"against": name, "baseline": theirs.sum() / n.sum(), "p": p}


def _corrected(frame: pd.DataFrame, test: ChoiceTest) -> pd.DataFrame:
    """Correct all tests against one baseline together; drop those that cannot answer."""
    frame = frame.assign(p_adjusted=np.nan, p_bh=np.nan, note="")
    for _, group in frame[frame["p"].notna()].groupby("against", sort=False):
        for texts, rows in group.groupby("texts"):
            why = _why_none(int(str(texts)), len(group), test.level)
            if why:
                frame.loc[rows.index, ["p", "note"]] = np.nan, why
        p = frame.loc[group.index, "p"].to_numpy(dtype=float)
        frame.loc[group.index, "p_adjusted"] = stats.holm(p)
        frame.loc[group.index, "p_bh"] = stats.benjamini_hochberg(p)
    return frame


def _why_none(texts: int, tests: int, level: float) -> str:
    """Why so few texts cannot answer so many tests; nothing where they can."""
    try:
        stats.check_resolution(tests=tests, sentences=texts, level=level, alternative="greater")
    except StatsError as error:
        return str(error)
    return ""
