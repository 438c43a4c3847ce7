"""Clark et al. 2019, section 5, rewritten slowly: pair by pair, with gradients by hand.

One sentence a step, in order, the cross-entropy summed over its words.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from probe_examples import HEADS, example, vectors

from headcount.rooms.probing.data import ProbeExample, settings_for
from headcount.rooms.probing.scorers import DistanceScores, fresh, train

SENTENCES = [example(words, seed) for seed, words in enumerate((4, 1, 6, 3, 5))]
Weights = dict[str, np.ndarray]


class TensorFlowAdam:
    def __init__(self, weights: Weights) -> None:
        self.weights, self.updates = weights, 0
        self.m = {name: np.zeros_like(value) for name, value in weights.items()}
        self.v = {name: np.zeros_like(value) for name, value in weights.items()}

    def update(self, gradients: Weights) -> None:
        self.updates += 1
        rate = 0.002 * np.sqrt(1 - 0.999**self.updates) / (1 - 0.9**self.updates)
        for name, gradient in gradients.items():
            self.m[name] = 0.9 * self.m[name] + 0.1 * gradient
            self.v[name] = 0.999 * self.v[name] + 0.001 * gradient**2
            self.weights[name] -= rate * self.m[name] / (np.sqrt(self.v[name]) + 1e-8)


def both_ways(one: ProbeExample) -> np.ndarray:
    """Maps and their transposes, ``[2 * head, 2 + n, 2 + n]``."""
    assert one.maps is not None
    maps = one.maps.double().numpy()
    return np.concatenate([maps, maps.transpose(0, 2, 1)])


def weights_of_pair(kind: str, weights: Weights, pair: np.ndarray) -> np.ndarray:
    return weights["weights"] if kind == "attention" else pair @ weights["kernel"] + weights["bias"]


def word_pair(one: ProbeExample, table: np.ndarray, i: int, c: int, shifted: bool) -> np.ndarray:
    """[v_dependent; v_candidate] of word i and candidate c, 0 for ROOT."""
    words = table[one.words.numpy()]
    nothing = np.zeros(table.shape[1])
    if not shifted:
        return np.concatenate([words[i], words[c - 1] if c else nothing])
    return np.concatenate([words[i], words[c]] if c < len(one) else [nothing, nothing])


def slow_step(
    kind: str, weights: Weights, one: ProbeExample, table: np.ndarray, shifted: bool
) -> Weights:
    """The gradients of one sentence."""
    maps, n = both_ways(one), len(one)
    found = {name: np.zeros_like(value) for name, value in weights.items()}
    for i in range(n):
        rows = maps[:, 2 + i]
        features, pairs, scores = [], [], []
        for c in range(n + 1):
            root = weights["root"][0] * rows[:, 0] + weights["root"][1] * rows[:, 1]
            features.append(rows[:, 1 + c] if c else root)
            pairs.append(word_pair(one, table, i, c, shifted))
            scores.append(features[c] @ weights_of_pair(kind, weights, pairs[c]))
        chances = np.exp(np.array(scores) - max(scores))
        chances /= chances.sum()
        chances[one.heads[i]] -= 1
        for c in range(n + 1):
            if kind == "attention":
                found["weights"] += chances[c] * features[c]
            else:
                found["kernel"] += chances[c] * np.outer(pairs[c], features[c])
                found["bias"] += chances[c] * features[c]
        of_root = weights_of_pair(kind, weights, pairs[0])
        found["root"] += chances[0] * np.array([rows[:, 0] @ of_root, rows[:, 1] @ of_root])
    return found


@pytest.mark.parametrize(
    ("kind", "convention"), [("attention", "code"), ("words", "code"), ("words", "paper")]
)
def test_training_as_the_authors(kind: str, convention: str) -> None:
    settings, table = settings_for(convention), vectors()
    scorer = fresh(kind, HEADS, table, seed=2, shifted=settings.shifted)
    slow = {name: value.detach().double().numpy() for name, value in scorer.named_parameters()}
    slow = {name: value.copy() for name, value in slow.items()}
    adam = TensorFlowAdam(slow)
    for one in SENTENCES:
        adam.update(slow_step(kind, slow, one, table.double().numpy(), settings.shifted))
    train(scorer, SENTENCES, settings)
    for name, value in scorer.named_parameters():
        np.testing.assert_allclose(value.detach().numpy(), slow[name], atol=2e-6)


@pytest.mark.parametrize("shifted", [True, False])
def test_scores_of_distances(shifted: bool) -> None:
    from headcount.rooms.probing.scorers import batch_of

    one, table = SENTENCES[2], vectors()
    scorer = DistanceScores(table, seed=3, shifted=shifted, hidden=8)
    kernel, bias, output, last = (value.detach().double().numpy() for value in scorer.parameters())
    n = len(one)
    slow = np.zeros((n, n + 1))
    for i in range(n):
        for c in range(n + 1):
            to = c - 1
            features = [0.0, max(to - i, 0) / n, max(i - to, 0) / n]
            features += [float(to - i == offset) for offset in (0, -1, 1, -2, 2)]
            features = [0.0] * 8 + [1.0] if c == 0 else [*features, 0.0]
            pair = word_pair(one, table.double().numpy(), i, c, shifted)
            hidden = np.tanh(np.concatenate([features, pair]) @ kernel + bias)
            slow[i, c] = (hidden @ output + last).item()
    ours = scorer(batch_of([one]))[0].detach().numpy()
    np.testing.assert_allclose(ours, slow, atol=1e-5)


def weights_after(sentences: Sequence[ProbeExample], batch: int) -> np.ndarray:
    scorer = fresh("attention", HEADS, None)
    train(scorer, sentences, settings_for("code", batch=batch))
    return next(scorer.parameters()).detach().numpy()


def test_authors_take_one_sentence_a_step() -> None:
    assert settings_for("code").batch == settings_for("paper").batch == 1
    assert not np.allclose(weights_after(SENTENCES, 1), weights_after(SENTENCES, 5), atol=1e-4)
