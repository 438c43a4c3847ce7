"""The aligner on languages whose dictionary is known."""

from __future__ import annotations

import numpy as np
import pytest

from headcount.survey.trials.alignment import Aligner, Ids


def made_pairs(count: int, seed: int = 0) -> tuple[list[Ids], list[set[tuple[int, int]]]]:
    """Distinct words, each translated by 100 more, in an order of their own."""
    rng = np.random.default_rng(seed)
    pairs, truth = [], []
    for _ in range(count):
        source = rng.choice(30, rng.integers(3, 8), replace=False)
        order = rng.permutation(len(source))
        pairs.append((source.tolist(), (source[order] + 100).tolist()))
        truth.append({(place, int(there)) for place, there in enumerate(order)})
    return pairs, truth


def test_it_learns_a_dictionary_whatever_the_order() -> None:
    pairs, truth = made_pairs(300)
    found = Aligner()(pairs)
    linked = sum(map(len, found))
    right = sum(len({*links} & true) for links, true in zip(found, truth, strict=True))
    assert right / sum(map(len, truth)) > 0.95
    assert right / linked > 0.99


def test_what_cannot_be_told_apart_is_not_linked() -> None:
    assert Aligner()([([1, 2], [7, 8])]) == [[]]
    assert Aligner()([([5, 5], [9])] * 20) == [[]] * 20  # which of the two 5s?


def test_a_word_without_a_translation_is_left_alone() -> None:
    pairs, truth = made_pairs(300)
    noisy = [(source, [*target, 500]) for source, target in pairs]
    found = Aligner()(noisy)
    touched = [len(target) for (_, target), links in zip(pairs, found, strict=True)
               if len(target) in dict(links)]  # fmt: skip
    assert not touched
    assert sum(map(len, found)) > 0.9 * sum(map(len, truth))


@pytest.mark.parametrize("pairs", [[], [([], [3])], [([], [])]])
def test_nothing_to_link(pairs: list[Ids]) -> None:
    assert Aligner()(pairs) == [[] for _ in pairs]


def test_the_order_of_pairs_does_not_show() -> None:
    pairs, _ = made_pairs(60)
    there = Aligner()(pairs)
    assert Aligner()(pairs[::-1])[::-1] == there
