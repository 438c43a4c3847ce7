"""The order of probes, told step by step."""

from __future__ import annotations

import numpy as np

from research.probes.order import ORDER, leads_of_the_structural, steps_of_the_order


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


def test_leads_hold_what_sentences_and_what_seeds_leave_open() -> None:
    draw = np.random.default_rng(1)
    chances = {"attention": 0.5, "words": 0.7, "structural": 0.7}
    arcs = {
        (kind, seed): np.stack([draw.binomial(10, chance, 300), np.full(300, 10)], axis=1)
        for kind, chance in chances.items()
        for seed in range(3)
    }
    attention, words = leads_of_the_structural(arcs)
    assert (attention["against"], words["against"]) == ("attention", "words")
    assert attention["low"] > 0.1
    assert words["low"] < 0 < words["high"]
    assert words["low"] < words["over_sentences"][0] < words["over_sentences"][1] < words["high"]
    assert words["lead"] == round(np.mean(words["by_seed"]), 4)
    arcs["structural", 1][:, 0] //= 2  # one seed fails: nothing can be told any more
    assert leads_of_the_structural(arcs)[0]["low"] < 0 < leads_of_the_structural(arcs)[0]["high"]
    assert leads_of_the_structural({("words", 0): arcs["words", 0]}) == []
