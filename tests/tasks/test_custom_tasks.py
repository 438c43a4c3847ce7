from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from tiny import TINY, tiny_inputs
from tiny_subjects import classifier, encoder, writer
from tiny_tokenizers import ENGLISH

import headcount as hc
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


# --- Batches as a model takes them --------------------------------------------------------------


def test_batches_are_scored_as_the_texts_behind_them() -> None:
    subject = classifier()
    texts = [(text, number % 2) for number, text in enumerate(ENGLISH[:6])]
    task = tasks.classification(texts, metric="loss")
    made = []
    for batch in task.batches(subject, 3):
        made.append({**batch.inputs, "labels": batch.labels})
    ours = hc.score(subject, made, by="gradient,ablation")
    theirs = hc.score(subject, task, by="gradient,ablation")
    for name in ("gradient", "ablation"):
        np.testing.assert_allclose(ours.numbers(name), theirs.numbers(name), atol=1e-5)
    loader = torch.utils.data.DataLoader(made, batch_size=None)
    again = hc.score(subject, loader, by="gradient")
    np.testing.assert_allclose(again.numbers("gradient"), ours.numbers("gradient"))
    right = tasks.batches(made, metric="accuracy").evaluate(subject).value
    assert right == tasks.classification(texts).evaluate(subject).value


def test_batches_of_a_model_with_another_loss_take_its_own() -> None:
    subject = writer()
    made = [{"input_ids": torch.tensor([[3, 4, 5, 6], [4, 5, 3, 7]])}]
    made[0]["labels"] = made[0]["input_ids"]
    loss = tasks.batches(made).evaluate(subject)
    one = subject.model(**{name: value[:1] for name, value in made[0].items()}).loss
    assert loss.scores[0] == pytest.approx(one.item(), rel=1e-5)
    assert (
        tasks.batches(made).hash
        != tasks.batches([{**made[0], "labels": made[0]["labels"] + 1}]).hash
    )


@pytest.mark.parametrize("family", ["whisper", "t5", "llama"])
def test_a_batch_of_sequences_is_one_forward(family: str) -> None:
    """Each row's loss is what the model says of it alone; so gradients and ablation run, too."""
    classes = {"t5": "T5ForConditionalGeneration", "llama": "LlamaForCausalLM"}
    chosen = {"model_class": classes[family]} if family in classes else {}
    subject = Subject(TINY[family](**chosen).eval())
    given = {
        name: value for name, value in tiny_inputs(subject.model).items() if "mask" not in name
    }
    given.pop("decoder_input_ids", None)  # a collator seldom gives them
    draw = torch.Generator().manual_seed(0)
    labels = torch.randint(5, 90, (len(next(iter(given.values()))), 6), generator=draw)
    if family == "llama":
        labels = given["input_ids"].clone()
    labels[0, -2:] = -100
    made = [{**given, "labels": labels}]
    scores = tasks.batches(made).evaluate(subject).scores
    for row in range(len(labels)):
        one = {name: value[row : row + 1] for name, value in made[0].items()}
        with torch.no_grad():
            assert scores[row] == pytest.approx(subject.model(**one).loss.item(), rel=1e-5)
    table = hc.score(subject, made, by="gradient,ablation")
    assert table.frame["gradient"].notna().all()
    assert table.frame["ablation"].notna().all()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([{"input_ids": torch.ones(1, 2)}], "Batch 1 has no labels .it has input_ids.; add"),
        ([(1, 2)], "Batch 1 is a tuple; give a mapping of names to tensors"),
        ([], "There are no batches"),
    ],
)
def test_batches_that_cannot_be_used_are_told(given: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        tasks.batches(given)
