"""The largest sure removal: steps in turn, one-sided bounds, and a level that holds."""

from __future__ import annotations

import numpy as np
import pytest
from tiny_tokenizers import ENGLISH

from headcount import tasks
from headcount.errors import UsageError
from headcount.importance.sweep.interventions import Intervention
from headcount.importance.sweep.sweep import Sweep
from headcount.pruning.curve import point_name
from headcount.pruning.order import Order
from headcount.pruning.plan import loss_bounds, point_of, points_in_words, search
from headcount.records.heads import Head
from headcount.stats.paired import paired_share_interval
from headcount.tasks.classification import ACCURACY
from headcount.tasks.comparison import Metric
from headcount.tasks.task import MEAN_LOSS, Outcome

TASK = tasks.classification([(text, 0) for text in ENGLISH])
ORDER = Order("made", "all", tuple((Head("enc", 0, place),) for place in range(3)))


def made(metric: Metric, whole: np.ndarray, points: list[np.ndarray]) -> Sweep:
    """A sweep whose outcomes are known: a score an example."""

    def outcome(scores: np.ndarray) -> Outcome:
        return Outcome(metric, np.stack([scores, np.ones(len(scores))], axis=1))

    asked = [
        Intervention(ORDER.gone(step), name=point_name(ORDER, step))
        for step in range(1, len(points) + 1)
    ]
    return Sweep(TASK, tuple(asked), outcome(whole), tuple(map(outcome, points)), len(whole), True)


def test_the_first_failure_ends_it() -> None:
    noise = np.random.default_rng(0).normal(0, 0.01, (3, 400))
    whole = np.random.default_rng(1).random(400) + 1
    found = made(MEAN_LOSS, whole, [whole + noise[0], whole + 0.5, whole + noise[2]])
    answer = search(found, ORDER, 0.1)
    assert answer.step == 1  # the third would pass, but the second does not
    assert answer.bounds[0] < 0.01
    assert answer.bounds[1] == pytest.approx(0.5)
    assert search(found, ORDER, 0.6).step == 3
    better = made(MEAN_LOSS, whole, [whole - 0.3])
    assert search(better, Order("made", "all", ORDER.steps[:1]), 0).step == 1


@pytest.mark.parametrize("metric", [ACCURACY, MEAN_LOSS])
def test_an_order_without_steps_goes_nowhere(metric: Metric) -> None:
    found = search(made(metric, np.ones(20), []), Order("made", "all", ()), 1)
    assert (found.step, len(found.bounds)) == (0, 0)


def test_accuracy_is_not_sure_of_few_examples() -> None:
    right = np.ones(20)
    found = made(ACCURACY, right, [right] * 3)
    assert (loss_bounds(found) > 0.08).all()  # the bootstrap would say 0
    assert search(found, ORDER, 5).step == 0
    many = np.ones(2000)
    assert search(made(ACCURACY, many, [many] * 3), ORDER, 0.5).step == 3


def test_the_chance_of_too_much_loss_is_what_it_says() -> None:
    dice = np.random.default_rng(5)
    wrong = 0
    for _ in range(200):
        whole = dice.normal(1, 1, 60)
        # Every step truly loses 0.1, which is more than the 0.0999 that are allowed.
        points = [whole + dice.normal(0.1, 0.2, 60) for _ in range(3)]
        wrong += search(made(MEAN_LOSS, whole, points), ORDER, 0.0999, draws=500).step > 0
    assert wrong / 200 < 0.1  # 5% and the noise of 200 trials


def test_points_and_their_words() -> None:
    assert point_of("f1") == 0.01
    assert point_of("chrf") == point_of("loss") == 1
    assert points_in_words(1, "loss") == "1 nats"
    assert points_in_words(2, "speed") == "2 of speed"
    with pytest.raises(UsageError, match="The loss allowed is -1 points; it must be 0 or more"):
        search(made(MEAN_LOSS, np.ones(9), [np.ones(9)] * 3), ORDER, -1)


def test_the_interval_of_paired_shares_covers() -> None:
    dice = np.random.default_rng(2)
    draws = dice.random((2000, 80))
    ours = (draws > 0.12).astype(float)  # 0.88 right, and the other 0.9: both on the same draws
    theirs = ((draws > 0.06) & (draws < 0.96)).astype(float)
    interval = paired_share_interval(ours.T, theirs.T, confidence=0.95)
    inside = (interval.low <= 0.88 - 0.9) & (interval.high >= 0.88 - 0.9)
    assert 0.93 < inside.mean() < 0.99
    with pytest.raises(Exception, match="sentences"):
        paired_share_interval(np.ones(3), np.ones(4))
