"""Gates against rankings: the pair at its worst is never surer than the pair itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headcount.errors import InputError
from headcount.stats import mcnemar, paired_share_interval
from research import ROOT
from research.pruning.__main__ import main as pruning
from research.pruning.config import read_config
from research.pruning.paired import (
    against,
    by_example,
    compared,
    discordant,
    exactly,
    judge_again,
    main,
)
from research.pruning.rows import packed, unpacked


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


def test_right_and_wrong_come_back_from_their_digits() -> None:
    own = answers(0.8, 877, 1)
    assert len(packed(own)) == 2 * 110
    assert unpacked(packed(own), 877).tolist() == own.tolist()


def test_by_example_the_pair_is_exact_and_surer() -> None:
    whole = answers(0.9, 900, 7)
    one, two = changed(whole, 0.06, 8), changed(whole, 0.1, 9)
    curve = [row(one, whole, "gates"), row(two, whole, "gradient")]
    assert by_example({"curve": curve}) is None  # not kept
    bound = compared({"curve": curve}, margin=0.01)[0]
    for line, own in zip(curve, (one, two), strict=True):
        line["right"] = packed(own)
    told = compared({"curve": curve}, 0.01, by_example({"curve": curve}))[0]
    assert told["p"] == float(mcnemar(one, two).p)
    assert told["gates_alone_right"] + told["ranking_alone_right"] == (one != two).sum()
    assert told["difference"] == pytest.approx(bound["difference"])
    assert told["high"] - told["low"] < bound["high"] - bound["low"]
    assert told["p"] <= bound["p"]
    assert exactly(two, one)["difference"] == -told["difference"]


def test_the_level_is_kept_where_nothing_differs() -> None:
    """Two models that err alike at random: the exact test calls few of them different."""
    draw, called = np.random.default_rng(0), 0
    for _ in range(400):
        whole = (draw.random(300) < 0.85).astype(float)
        one, two = (np.where(draw.random(300) < 0.1, 1 - whole, whole) for _ in range(2))
        called += exactly(one, two)["p"] < 0.05
    assert called <= 400 * 0.05 + 2 * (400 * 0.05 * 0.95) ** 0.5


def test_sets_of_a_run_are_judged_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """On the classifier that it ran with, the same answers come back, to the last example."""
    smoke = ROOT / "research" / "pruning" / "config.smoke.toml"
    words = ["--config", str(smoke), "--device", "cpu", "--out", str(tmp_path)]
    assert pruning(["classifiers", *words]) == 0
    file = tmp_path / "pruning-classifiers.json"
    ran = json.loads(file.read_text())
    case = ran["cases"]["toy-sst2-0"]
    kept = by_example(case)
    assert kept is not None
    again = judge_again("toy-sst2-0", case, None, None, read_config(smoke))
    assert again["apart_from_the_run"]["most"] == 0
    for order, told in again["orders"].items():
        assert told == {left: kept["orders"][order][left] for left in told}
    assert main(["--results", str(tmp_path)]) == 0
    written = json.loads((tmp_path / "pruning-paired.json").read_text())
    assert {one["ranking"] for one in written["cases"]["toy-sst2-0"]} >= {"gradient", "ablation"}
    assert all("ranking_alone_right" in one for one in written["cases"]["toy-sst2-0"])
    file.write_text(json.dumps(ran | {"cases": {"minilm-sst2-0": case}}))
    assert main(["--results", str(tmp_path), "--only", "minilm-sst2-0"]) == 1
    assert "say --classifiers DIR" in capsys.readouterr().err
    case["held"]["hash"] = "another"
    with pytest.raises(InputError, match="other examples than those toy-sst2-0"):
        judge_again("toy-sst2-0", case, None, None, read_config(smoke))
