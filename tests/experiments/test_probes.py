"""The order of probes, told step by step."""

from __future__ import annotations

import numpy as np

from experiments.probes.order import ORDER, steps_of_the_order


def test_a_step_up_is_confirmed_and_a_step_down_is_not() -> None:
    draw = np.random.default_rng(0)
    chances = dict(zip(ORDER, (0.3, 0.2, 0.5, 0.5, 0.8), strict=True))
    words = np.full(300, 10)
    hits = {
        (kind, seed): np.stack([draw.binomial(10, chances[kind], 300), words], axis=1)
        for kind in ORDER
        for seed in range(2)
    }
    steps = steps_of_the_order(hits)
    assert [step["upper"] for step in steps] == list(ORDER[1:])
    assert [step["confirmed"] for step in steps] == [False, True, False, True]
    assert steps[0]["high"] < 0
