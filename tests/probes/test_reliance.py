"""Which heads a probe relies on."""

from __future__ import annotations

import numpy as np
import torch
from probe_examples import HEADS, example, vectors

from headcount.probing.data import batch_of
from headcount.probing.parse import reliance
from headcount.probing.scorers import fresh
from headcount.records.heads import Head

PROBED = [Head("enc", 0, index) for index in range(HEADS)]
EXAMPLES = [example(words, seed) for seed, words in enumerate((4, 2, 6, 3))]


def test_heads_add_up_to_the_margin_of_gold_arcs() -> None:
    for kind in ("attention", "words"):
        scorer = fresh(kind, HEADS, vectors(), seed=1).requires_grad_(False)
        table = reliance(scorer, EXAMPLES, PROBED, PROBED)
        margins: list[float] = []
        for one in EXAMPLES:
            scores = scorer(batch_of([one]))[0]
            gold = scores.gather(1, one.heads[:, None])[:, 0]
            margins += (gold - scores.mean(1)).tolist()
        np.testing.assert_allclose(table.frame["probe_weight"].sum(), np.mean(margins), rtol=1e-4)
        assert (table.low["probe_weight"] <= table.frame["probe_weight"]).all()


def test_a_head_that_is_the_same_everywhere_decides_nothing() -> None:
    examples = [example(words, seed) for seed, words in enumerate((4, 2, 6, 3))]
    for one in examples:
        assert one.maps is not None
        one.maps[1] = 0.25
    scorer = fresh("attention", HEADS, None)
    scorer.begin({"weights": [1.0] * 6, "root": [0.5, 0.5]})
    table = reliance(scorer.requires_grad_(False), examples, PROBED, PROBED)
    assert abs(table.frame["probe_weight"].iloc[1]) < 1e-6
    assert (table.frame["probe_weight"].iloc[[0, 2]].abs() > 1e-4).all()


def test_heads_of_other_stacks_are_unknown() -> None:
    heads = [*PROBED, Head("cross", 0, 0)]
    table = reliance(fresh("attention", HEADS, None).requires_grad_(False), EXAMPLES, PROBED, heads)
    assert np.isnan(table.frame["probe_weight"].iloc[-1])
    assert table.notes["probe_weight"] == "cross: a probe reads enc alone"
    assert not torch.isnan(torch.tensor(table.frame["probe_weight"].to_numpy()[:-1])).any()
