"""The best of many chosen on one half: what the other half says, and what it could have shown."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from headcount import tasks
from headcount.errors import UsageError
from headcount.importance.sweeps.interventions import Intervention
from headcount.importance.sweeps.sweeping import Sweep
from headcount.tasks.task import ACCURACY, Outcome
from research.disabling.best_of_halves import best_of_halves, detectable_gain
from research.disabling.detectable import detectable_effect, minimum_detectable_difference


def made(right: np.ndarray, base: np.ndarray) -> Sweep:
    """A sweep of made-up answers: `right [intervention, example]`, as 0 and 1."""
    task = tasks.classification([(f"text {n}", n % 2) for n in range(len(base))])
    about = {"task": task.describe()}

    def outcome(answers: np.ndarray) -> Outcome:
        rows = np.stack([answers, np.ones_like(answers)], axis=1).astype(float)
        return Outcome(ACCURACY, rows, provenance=about)

    named = tuple(Intervention("enc.0.0", name=f"head {n}") for n in range(len(right)))
    return Sweep(task, named, outcome(base), tuple(map(outcome, right)), len(base), True)


def noise(heads: int, examples: int, seed: int = 0) -> Sweep:
    """Heads that change a tenth of the answers by chance alone."""
    dice = np.random.default_rng(seed)
    base = dice.integers(0, 2, examples)
    flips = dice.random((heads, examples)) < 0.1
    return made(np.where(flips, dice.integers(0, 2, flips.shape), base), base)


def test_chance_looks_like_a_gain_on_the_half_that_chose() -> None:
    frame = best_of_halves(noise(60, 200), splits=5)
    assert len(frame) == 5
    assert (frame["gain_chosen"] > 0).all()
    assert abs(frame["gain"].mean()) < frame["gain_chosen"].mean() / 2
    assert (frame["n"] == 100).all()


def test_a_true_gain_is_found_and_kept() -> None:
    found = noise(10, 200)
    better = np.minimum(found.baseline.scores + (np.arange(200) % 4 == 0), 1)
    rows = np.stack([better, np.ones(200)], axis=1)
    outcomes = (*found.outcomes[:-1], replace(found.outcomes[-1], statistics=rows))
    frame = best_of_halves(replace(found, outcomes=outcomes))
    assert (frame["chosen"] == "head 9").all()
    assert (frame["gain"] > 0.05).all()
    assert (frame["low"] <= frame["gain"]).all()


def test_splits_and_seeds_repeat() -> None:
    found = noise(8, 60)
    assert best_of_halves(found).equals(best_of_halves(found))
    assert not best_of_halves(found).equals(best_of_halves(found, seed=7))


def test_no_change_at_all_could_still_have_been_seen_only_above_a_floor() -> None:
    base = np.ones(277)
    still = made(np.ones((1, 277)), base)
    assert detectable_gain(still)[0] == pytest.approx(6 / 277)  # 2^-5 is the first p below 0.05


def test_more_changes_need_a_larger_difference() -> None:
    base = np.ones(300)
    few, many = base.copy(), base.copy()
    few[:20], many[:120] = 0, 0
    found = detectable_gain(made(np.stack([few, many]), base))
    assert found[0] < found[1]
    assert found[1] == pytest.approx(float(minimum_detectable_difference(300, 0.4)))


def test_too_few_examples_are_refused() -> None:
    with pytest.raises(UsageError, match="2 examples and 5 splits were given"):
        best_of_halves(noise(3, 2))


def test_an_interval_tells_what_it_could_have_shown() -> None:
    one = detectable_effect(-0.02, 0.02)
    assert one == pytest.approx(0.02 / 1.96 * (1.96 + 0.8416), rel=1e-3)
    assert detectable_effect(-0.02, 0.02, tests=72) > one
