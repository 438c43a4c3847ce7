"""The best tree, against all trees there are."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from headcount.probing.parse import best_tree


def is_tree(heads: tuple[int, ...]) -> bool:
    if heads.count(0) != 1:
        return False
    for start in range(1, len(heads) + 1):
        node, seen = start, set()
        while node:
            if node in seen:
                return False
            seen.add(node)
            node = heads[node - 1]
    return True


@pytest.mark.parametrize("words", [1, 2, 3, 4, 5])
def test_against_every_tree(words: int) -> None:
    draw = np.random.default_rng(words)
    trees = [one for one in product(range(words + 1), repeat=words) if is_tree(one)]
    for _ in range(40):
        scores = draw.normal(size=(words, words + 1))
        best = max(sum(scores[range(words), heads]) for heads in trees)
        found = best_tree(scores)
        assert is_tree(tuple(found))
        assert scores[range(words), found].sum() == pytest.approx(best)
