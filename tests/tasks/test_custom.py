from __future__ import annotations

from typing import Any

import pytest
import torch
from tiny_subjects import encoder

from headcount import tasks
from headcount.errors import InputError, UsageError
from headcount.models.subject import Subject
from headcount.wiring import valve

TEXTS = ["a", "bb", "cccc", "dd", "e", "ff", "ggg"]


def lengths(subject: Subject, texts: list[str]) -> list[int]:
    assert not subject.model.training
    assert not torch.is_grad_enabled()
    return [len(text) for text in texts]


def test_the_metric_is_the_mean_score() -> None:
    outcome = tasks.custom(TEXTS, lengths, metric="length").evaluate(encoder(), batch_size=3)
    assert outcome.value == 15 / 7
    assert outcome.scores.tolist() == outcome.outputs == [1, 2, 4, 2, 1, 2, 3]
    assert (outcome.name, outcome.higher_is_better) == ("length", True)
    assert outcome.provenance["task"]["score"] == "lengths"


def test_examples_come_in_batches() -> None:
    seen: list[int] = []

    def score(subject: Subject, texts: list[str]) -> list[int]:
        seen.append(len(texts))
        return [0] * len(texts)

    tasks.custom(TEXTS, score, higher_is_better=False).evaluate(encoder(), batch_size=3)
    assert seen == [3, 3, 1]


def test_scores_are_compared_by_flipping_signs() -> None:
    subject = encoder()
    task = tasks.custom(TEXTS, lengths)
    found = task.evaluate(subject).against(task.evaluate(subject))
    assert (found.value, found.p, found.test) == (0, 1, "sign-flip")


def test_a_loss_of_ones_own_is_differentiable_in_the_heads() -> None:
    subject = encoder()

    def loss(subject: Subject, texts: list[Any]) -> torch.Tensor:
        ids = torch.tensor([[2, 5 + len(text), 3] for text in texts])
        return subject.model(input_ids=ids).last_hidden_state.square().sum(dim=(1, 2))

    task = tasks.custom(TEXTS, lengths, loss=loss)
    [batch] = task.batches(subject)
    scales = torch.ones(len(batch), len(subject.heads), requires_grad=True)
    with valve(subject, scales):
        task.loss(subject, batch).sum().backward()
    assert scales.grad is not None
    assert scales.grad.abs().min() > 0


@pytest.mark.parametrize(
    ("score", "message"),
    [
        (
            lambda subject, texts: [1.0],
            "The score function gave 1 numbers for 7 examples; it must give one an example.",
        ),
        (
            lambda subject, texts: [float("nan")] * len(texts),
            "Example 1 gets the score nan; give a number.",
        ),
    ],
)
def test_a_score_that_is_none_is_told(score: Any, message: str) -> None:
    with pytest.raises((UsageError, InputError)) as error:
        tasks.custom(TEXTS, score).evaluate(encoder())
    assert str(error.value) == message


def test_what_is_wrong_is_told() -> None:
    with pytest.raises(InputError, match="There are no examples; a custom task takes a list"):
        tasks.custom([], lengths)
    with pytest.raises(UsageError, match="score is a str; give a function of a subject and a list"):
        tasks.custom(TEXTS, "length")  # type: ignore[arg-type]
    task = tasks.custom(TEXTS, lengths, loss=lambda subject, texts: torch.zeros(()))
    [batch] = task.batches(encoder())
    with pytest.raises(UsageError, match=r"gave the shape \(\) for 7 examples; .* not averaged"):
        task.loss(encoder(), batch)
    with pytest.raises(UsageError, match="This custom task has no loss, which gradients need"):
        tasks.custom(TEXTS, lengths).loss(encoder(), batch)
    with pytest.raises(UsageError, match="The batch size is 0"):
        tasks.custom(TEXTS, lengths).evaluate(encoder(), batch_size=0)
