"""Gates against rankings: the pair at its worst is never surer than the pair itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from experiments.pruning.paired import against, compared, discordant
from headcount.stats import mcnemar, paired_share_interval


def answers(right: float, n: int, seed: int) -> np.ndarray:
    return (np.random.default_rng(seed).random(n) < right).astype(float)


def changed(whole: np.ndarray, share: float, seed: int) -> np.ndarray:
    """The same answers with a share of them turned round."""
    turned = np.random.default_rng(seed).random(len(whole)) < share
    return np.where(turned, 1 - whole, whole)


def row(own: np.ndarray, whole: np.ndarray, order: str, left: int = 8) -> dict[str, Any]:
    _, low, high = (float(part) for part in paired_share_interval(own, whole))
    return {
        "order": order, "heads_left": left, "value": float(own.mean()), "n": len(own),
        "delta": float(own.mean() - whole.mean()), "delta_low": low, "delta_high": high,
        "healed": False,
    }  # fmt: skip


@pytest.mark.parametrize("seed", range(8))
def test_it_is_never_surer_than_the_pair(seed: int) -> None:
    whole = answers(0.9, 900, seed)
    one, two = changed(whole, 0.05, seed + 50), changed(whole, 0.12, seed + 90)
    told = against(row(one, whole, "gates"), row(two, whole, "gradient"))
    assert told["difference"] == pytest.approx(one.mean() - two.mean())
    assert told["discordant_at_most"] >= (one != two).sum()
    assert told["p"] >= float(mcnemar(one, two).p) - 1e-12
    assert told["low"] <= told["difference"] <= told["high"]


def test_discordance_follows_from_the_interval() -> None:
    whole = answers(0.8, 2000, 1)
    own = changed(whole, 0.1, 2)
    told = discordant(row(own, whole, "gates"))
    assert told == pytest.approx((own != whole).sum(), rel=0.1)


def test_verdicts() -> None:
    whole = answers(0.9, 2000, 3)
    ruined, fine = changed(whole, 0.5, 4), changed(whole, 0.001, 5)
    curve = [
        row(fine, whole, "gates", 8), row(ruined, whole, "gradient", 8),
        row(fine, whole, "gates", 4), row(fine, whole, "gradient", 4),
        row(fine, whole, "gates", 2), row(changed(whole, 0.03, 6), whole, "ablation", 2),
        row(ruined, whole, "gates", 1), row(fine, whole, "gradient", 1),
        row(fine, whole, "gradient", 40),
    ]  # fmt: skip
    told = compared({"curve": curve}, margin=0.01)
    verdicts = {one["heads_left"]: one["verdict"] for one in told}
    assert verdicts[8] == "gates better"
    assert verdicts[4] == "alike"
    assert verdicts[1] == "ranking better"
    assert verdicts[2] in ("cannot tell", "gates better")
    assert 40 not in verdicts  # gates were not judged there
    assert all(one["p_adjusted"] >= one["p"] for one in told)
