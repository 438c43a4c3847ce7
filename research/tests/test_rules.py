"""Rules of relevance beside each other: a better rule is seen, chance is not, pairs are kept."""

from __future__ import annotations

import json

import numpy as np
import pytest

from research import ROOT
from research.rules.paired import differences, within_layers

HEADS = [
    f"{stack}.{layer}.{i}" for stack in ("enc", "cross") for layer in range(6) for i in range(8)
]
NOISE = np.random.default_rng(0)
COST = NOISE.normal(size=len(HEADS))


def scores(values: np.ndarray) -> dict[str, float]:
    return dict(zip(HEADS, values.tolist(), strict=True))


def noisy(of: np.ndarray, noise: float, seed: int) -> dict[str, float]:
    return scores(of + noise * np.random.default_rng(seed).normal(size=len(of)))


def test_a_rule_that_agrees_better_is_seen() -> None:
    rules = {"default": noisy(COST, 3, 1), "better": noisy(COST, 0.5, 2)}
    found = differences(rules, {"ablation": scores(COST)})["ablation"]["default - better"]
    assert set(found) == {"enc", "cross", "mean of stacks", "within layers"}
    for row in found.values():
        assert row["difference"] < -0.2
        assert row["p"] <= row["p_adjusted"] < 0.05
    assert found["mean of stacks"]["high"] < 0


def test_two_rules_that_agree_as_well_are_not_told_apart() -> None:
    """In 20 trials chance makes more than three in less than 2% of cases."""
    small = 0
    for seed in range(20):
        rules = {"default": noisy(COST, 1, 2 * seed), "other": noisy(COST, 1, 2 * seed + 1)}
        found = differences(rules, {"ablation": scores(COST)})["ablation"]["default - other"]
        small += found["mean of stacks"]["p"] < 0.05
    assert small <= 3


def test_the_same_heads_are_drawn_for_both_rules() -> None:
    """Two rules that err together differ surely where two intervals would overlap."""
    error = 3 * np.random.default_rng(1).normal(size=len(HEADS))
    rules = {"default": scores(COST + error), "other": scores(1.6 * COST + error)}
    found = differences(rules, {"ablation": scores(COST)})["ablation"]["default - other"]
    assert found["mean of stacks"]["high"] < 0
    width = found["mean of stacks"]["high"] - found["mean of stacks"]["low"]
    assert width < 0.15  # unpaired, some 0.5


def test_layers_that_differ_as_a_whole_are_no_agreement_within_them() -> None:
    level = np.array([float(head.split(".")[1]) for head in HEADS])
    steep = within_layers(noisy(10 * level, 1, 3), noisy(COST, 1, 4), scores(COST + 10 * level))
    assert steep["difference"] < -0.3
    assert steep["p"] < 0.05


@pytest.mark.parametrize("model", ["translator", "minilm"])
def test_what_is_told_follows_from_the_scores_that_are_kept(model: str) -> None:
    told = json.loads((ROOT / "research/results/relevance-rules.json").read_text(encoding="utf8"))
    told = told if model == "translator" else told[model]
    heads = dict(told["heads"])
    rules = heads.pop("relevance")
    assert list(rules) == [rule for rule, one in told["rules"].items() if "stability" in one]
    assert {"default", "ding", "z+"} <= set(rules)
    assert differences(rules, heads) == told["differences"]
