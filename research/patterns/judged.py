"""The network and the rule against the looked-at labels; intervals from resampled heads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from headcount import stats
from headcount.rooms.patterns.tally import PATTERNS, Judge, numbers_of

from .labels import crossed, f1_of, kappa, macro_f1
from .store import Kept, tensors

SIZES = {"up to 16 tokens": (0, 16), "17 to 40 tokens": (17, 40), "over 40 tokens": (41, 999)}


def told(maps: list[Kept], by: Judge) -> list[str]:
    """The pattern of each map by one judge."""
    return [PATTERNS[int(numbers_of(*tensors(one), by)[0])] for one in maps]


def doubled(one: Kept) -> Kept:
    """The same map as if every token were two: the pattern must not change."""
    weights = np.repeat(np.repeat(one.weights, 2, 0), 2, 1) / 2
    return Kept(weights, np.repeat(one.special, 2), np.repeat(one.segment, 2))


def score(about: pd.DataFrame, by: Judge) -> dict[str, Any]:
    """F1 of each class, their mean, accuracy, confusion, and the same by size and family."""
    counts = _counts(about, by)
    summed = counts.sum(0).reshape(len(PATTERNS), -1).astype(int)
    found = {name: _interval(counts, f1_of(place)) for place, name in enumerate(PATTERNS)}
    return {
        "maps": len(about),
        "heads": len(counts),
        "f1": found,
        "macro f1": _interval(counts, macro_f1),
        "accuracy": _interval(counts, _accuracy),
        "kappa": _interval(counts, kappa),
        "confusion (rows: looked at)": dict(zip(PATTERNS, summed.tolist(), strict=True)),
        "by size": _by_size(about, by),
        "by model": _by(about, by, "family"),
        "by kind": _by(about, by, "kind"),
    }


def _by_size(about: pd.DataFrame, by: Judge) -> dict[str, Any]:
    return {name: _part(about, by, about["tokens"].between(*ends)) for name, ends in SIZES.items()}


def _by(about: pd.DataFrame, by: Judge, column: str) -> dict[str, Any]:
    return {name: _part(about, by, about[column] == name) for name in about[column].unique()}


def passes(about: pd.DataFrame) -> dict[str, Any]:
    """How far the two passes of the reader agree."""
    return agreement(about, "first", "second")


def agreement(about: pd.DataFrame, one: str, two: str) -> dict[str, Any]:
    """How far two columns of labels agree: as a whole, class by class, and where they differ."""
    counts = crossed([*about[one]], [*about[two]], PATTERNS, _heads(about))
    summed = counts.sum(0).reshape(len(PATTERNS), -1).astype(int)
    return {
        "maps": len(about),
        "same": round(float(np.mean(about[one] == about[two])), 4),
        "kappa": _interval(counts, kappa),
        "kappa of one class against the rest": {
            name: _interval(counts, _kappa_of(place)) for place, name in enumerate(PATTERNS)
        },
        # No judge can be shown to do better than the labels agree with themselves.
        "f1": {name: _interval(counts, f1_of(place)) for place, name in enumerate(PATTERNS)},
        "macro f1": _interval(counts, macro_f1),
        f"confusion (rows: {one})": dict(zip(PATTERNS, summed.tolist(), strict=True)),
    }


def _kappa_of(label: int) -> Any:
    """Kappa of one class against all others together."""

    def statistic(counts: np.ndarray) -> np.ndarray:
        side = len(PATTERNS)
        table = counts.reshape(*counts.shape[:-1], side, side)
        both, first = table[..., label, label], table[..., label, :].sum(-1)
        second, total = table[..., :, label].sum(-1), table.sum((-2, -1))
        neither = total - first - second + both
        return kappa(np.stack([both, first - both, second - both, neither], -1))

    return statistic


def readers(about: pd.DataFrame, judges: Sequence[Judge]) -> dict[str, Any]:
    """Two readers of the same maps, and each judge against either and where both agree."""
    agreed = about[about["label"] == about["other"]]
    against = {
        "the first reader": about,
        "the second reader": about.assign(label=about["other"]),
        "where both agree": agreed,
    }
    found: dict[str, Any] = agreement(about, "label", "other")
    for by in judges:
        found[by] = {name: _short(one, by) for name, one in against.items()}
    return found


def _short(about: pd.DataFrame, by: Judge) -> dict[str, Any]:
    counts = _counts(about, by)
    each = {name: _interval(counts, f1_of(place)) for place, name in enumerate(PATTERNS)}
    found = {"accuracy": _accuracy, "kappa": kappa, "macro f1": macro_f1}
    return {"maps": len(about), "f1": each} | {k: _interval(counts, f) for k, f in found.items()}


def _true(about: pd.DataFrame) -> list[str]:
    return [*about["label"]]


def _counts(about: pd.DataFrame, by: str) -> np.ndarray:
    return crossed(_true(about), [*about[by]], PATTERNS, _heads(about))


def _heads(about: pd.DataFrame) -> list[tuple[str, str]]:
    return [*zip(about["family"], about["head"], strict=True)]


def _part(about: pd.DataFrame, by: Judge, chosen: Any) -> dict[str, Any]:
    counts = _counts(about[chosen], by).sum(0)
    return {
        "maps": int(chosen.sum()),
        "macro f1": round(float(macro_f1(counts)), 4),
        "accuracy": round(float(_accuracy(counts)), 4),
    }


def _accuracy(counts: np.ndarray) -> np.ndarray:
    side = round(counts.shape[-1] ** 0.5)
    right = counts[..., :: side + 1].sum(-1)
    total = counts.sum(-1)
    return np.where(total > 0, right / np.maximum(total, 1), np.nan)


def _interval(counts: np.ndarray, statistic: Any) -> dict[str, float]:
    found = stats.bootstrap_interval(counts, statistic, draws=2000)
    return {name: round(float(end), 4) for name, end in found._asdict().items()}
