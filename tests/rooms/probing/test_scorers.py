"""Scores of the three probes: in parts, in batches, and at the edges."""

from __future__ import annotations

import pytest
import torch
from probe_examples import HEADS, example, vectors

from headcount.errors import UsageError
from headcount.rooms.probing.scorers import (
    AttentionScores,
    allowed,
    batch_of,
    distances,
    example_batches,
    fresh,
    loss_of,
    shuffled,
)

KINDS = [("attention", False), ("words", False), ("words", True), ("distances", True)]


@pytest.mark.parametrize(("kind", "shifted"), KINDS)
def test_padding_changes_no_score_and_no_loss(kind: str, shifted: bool) -> None:
    scorer = fresh(kind, HEADS, vectors(), seed=1, shifted=shifted)
    short, long = example(3, 1), example(6, 2)
    together = batch_of([short, long])
    scores = allowed(scorer(together), together)
    alone = batch_of([short])
    torch.testing.assert_close(scores[0, :3, :4], scorer(alone)[0])
    assert torch.isinf(scores[0, :, 4:]).all()
    mean = (loss_of(scorer, alone) + loss_of(scorer, batch_of([long]))) / 2
    torch.testing.assert_close(loss_of(scorer, together), mean)


@pytest.mark.parametrize(("kind", "shifted"), KINDS[:3])
def test_the_parts_of_the_heads_add_up(kind: str, shifted: bool) -> None:
    scorer = fresh(kind, HEADS, vectors(), shifted=shifted)
    batch = batch_of([example(4, 3), example(5, 4)])
    torch.testing.assert_close(scorer.contributions(batch).sum(1), scorer(batch))


def test_a_probe_of_distances_has_no_heads_to_blame() -> None:
    scorer = fresh("distances", HEADS, vectors())
    with pytest.raises(UsageError, match="looks at no attention"):
        scorer.contributions(batch_of([example(3)]))


def test_the_shift_moves_words_against_maps() -> None:
    batch = batch_of([example(4, 3)])
    straight, moved = (fresh("words", HEADS, vectors(), shifted=one) for one in (False, True))
    assert not torch.allclose(straight(batch), moved(batch))
    # Without vectors there is nothing to move.
    none = torch.zeros(7, 5)
    straight, moved = (fresh("words", HEADS, none, shifted=one) for one in (False, True))
    torch.testing.assert_close(straight(batch), moved(batch))


def test_weights_can_be_given() -> None:
    scorer = AttentionScores(HEADS)
    scorer.begin({"weights": range(6), "root": [1.0, 0.5]})
    assert scorer.weights.tolist() == [0, 1, 2, 3, 4, 5]
    assert scorer.root.tolist() == [1, 0.5]
    with pytest.raises(UsageError, match=r"weights has the shape \(5,\); it must be \(6,\)"):
        scorer.begin({"weights": range(5)})
    with pytest.raises(UsageError, match="no weight 'bias'; it has weights, root"):
        scorer.begin({"bias": 0})


def test_distances_of_a_short_sentence_in_a_long_batch() -> None:
    both = distances(torch.tensor([2, 4]), 4)
    assert both[0, 0, 2, 0] == 0.5
    assert both[1, 0, 2, 0] == 0.25
    assert both[1, 3, 2].tolist() == [0, 0.5, 0, 0, 0, 1, 0, 0]
    assert both[..., 0, :].sum() == 8  # ROOT has its own feature alone


def test_a_shuffle_loses_nothing() -> None:
    examples = [example(2 + number % 5, number) for number in range(70)]
    first = [one.index for group in shuffled(examples, 4, seed=0) for one in group]
    assert sorted(first) == list(range(70))
    assert first != [one.index for group in shuffled(examples, 4, seed=1) for one in group]
    assert [len(group) for group in example_batches(examples, 32)] == [32, 32, 6]
