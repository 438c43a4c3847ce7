"""Laws of gradient importance: slopes of the valve, of finite differences, at any batch size."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from surgery import answer
from tiny import INTERFACE, OUTSIDE, tiny_inputs
from tiny_subjects import classifier, encoder, filler, translator, writer
from tiny_tokenizers import ENGLISH, PAIRS
from torch import Tensor

from headcount import tasks
from headcount.importance.gradient import gradient, slopes
from headcount.models.subject import Subject
from headcount.tasks.task import Task
from headcount.wiring import valve

FAMILIES = ["bert", "albert", "gpt2", "llama", "gpt_oss", "t5", "marian", "vit", "deberta", "mpnet"]
LABELLED = [(source, number % 2) for number, (source, _) in enumerate(PAIRS)]
SCORED = [(*pair, float(number)) for number, pair in enumerate(PAIRS)]
LONG = [" ".join(ENGLISH[:4]), *ENGLISH]

#: A task of each kind and a model for it.
KINDS: dict[str, tuple[Any, Task]] = {
    "translation": (translator, tasks.translation(PAIRS)),
    "classification": (classifier, tasks.classification(LABELLED)),
    "regression": (lambda: classifier(labels=1), tasks.regression(SCORED)),
    "similarity": (encoder, tasks.similarity(SCORED)),
    "similarity of an encoder-decoder": (translator, tasks.similarity(SCORED)),
    "lm in windows": (lambda: writer(n_positions=12), tasks.lm(LONG)),
    "mlm": (filler, tasks.mlm(ENGLISH)),
}


def tiny(family: str) -> Subject:
    return Subject((INTERFACE | OUTSIDE)[family](), name=family)


def losses(subject: Subject, inputs: dict[str, Tensor]) -> Tensor:
    """Some loss of each row that hangs on every head."""
    said = answer(subject.model(**inputs)).double().flatten(1)
    return said.logsumexp(-1) + said.square().sum(-1)


def own_task(inputs: dict[str, Tensor]) -> Task:
    """Rows of model inputs as a task of one's own."""
    rows = [{name: tensor[n] for name, tensor in inputs.items()} for n in range(3)]

    def loss(subject: Subject, some: list[dict[str, Tensor]]) -> Tensor:
        return losses(subject, {name: torch.stack([r[name] for r in some]) for name in some[0]})

    return tasks.custom(rows, lambda subject, some: [0.0] * len(some), loss=loss)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_slope_is_the_gradient_of_the_valves_scale(family: str) -> None:
    subject = tiny(family)
    inputs = tiny_inputs(subject.model, batch=3, pad=2)
    scales = torch.ones(3, len(subject.heads), requires_grad=True)
    with valve(subject, scales):
        (expected,) = torch.autograd.grad(losses(subject, inputs).sum(), scales)
    task = own_task(inputs)
    with slopes(subject, task, "example") as measure:
        found = measure(next(task.batches(subject)))["slopes"]
    assert np.abs(found).min(axis=0).max() > 0
    np.testing.assert_allclose(found, expected.numpy(), rtol=1e-3, atol=1e-4)
    table = gradient(subject, task, batch_size=2)
    np.testing.assert_allclose(table.frame["gradient"], np.abs(found).mean(0), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("family", ["marian", "bert", "gpt2"])  # in float64 throughout
def test_slopes_equal_finite_differences_of_the_loss(family: str) -> None:
    subject = tiny(family)
    subject.model.double()
    inputs = tiny_inputs(subject.model, batch=3, pad=2)
    task = own_task(inputs)
    with slopes(subject, task, "example") as measure:
        found = measure(next(task.batches(subject)))["slopes"]
    for place in range(0, len(subject.heads), 3):
        moved = []
        for step in (1e-5, -1e-5):
            scales = torch.ones(len(subject.heads), dtype=torch.float64)
            scales[place] += step
            with torch.no_grad(), valve(subject, scales):
                moved.append(losses(subject, inputs).numpy())
        expected = (moved[0] - moved[1]) / 2e-5
        np.testing.assert_allclose(found[:, place], expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("per", ["example", "token"])
def test_the_batch_size_never_shows(kind: str, per: Any) -> None:
    make, task = KINDS[kind]
    subject = make()
    if per == "token" and kind == "similarity of an encoder-decoder":
        pytest.skip("its decoder sees a token that the task does not know")
    one, many = (gradient(subject, task, per=per, batch_size=size) for size in (1, 7))
    assert (one.frame["gradient"] >= 0).all()
    assert one.frame["gradient"].max() > 0
    for a, b in zip(one.parts(), many.parts(), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-6 * float(one.frame.max().iloc[0]))


def test_windows_of_a_text_are_one_example() -> None:
    subject = writer(n_positions=12)
    task = tasks.lm(LONG[:1])
    batches = list(task.batches(subject, batch_size=1))
    assert len(batches) > 1
    with slopes(subject, task, "example") as measure:
        whole = sum(measure(batch)["slopes"] for batch in batches)
    found = gradient(subject, task).frame["gradient"]
    np.testing.assert_allclose(found, np.abs(whole)[0], rtol=1e-4)


def test_heads_that_a_loss_does_not_hang_on_score_exactly_0() -> None:
    make, task = KINDS["similarity of an encoder-decoder"]
    table = gradient(make(), task)
    assert (table.stack("dec").frame["gradient"] == 0).all()
    assert (table.stack("cross").frame["gradient"] == 0).all()
    assert (table.stack("enc").frame["gradient"] > 0).all()


def test_per_token_is_never_below_per_example() -> None:
    make, task = KINDS["translation"]
    subject = make()
    tokens = sum(len(subject.tokenizer(target).input_ids) for _, target in PAIRS)
    example = gradient(subject, task).stack("dec").frame["gradient"] * len(PAIRS)
    token = gradient(subject, task, per="token").stack("dec").frame["gradient"] * tokens
    assert (token >= example * (1 - 1e-4)).all()


def test_nothing_of_the_model_is_changed() -> None:
    subject = classifier()
    subject.model.train()
    frozen = subject.model.bert.embeddings.word_embeddings.weight.requires_grad_(False)
    asking = [weight.requires_grad for weight in subject.model.parameters()]
    state = torch.random.get_rng_state()
    _, task = KINDS["classification"]
    with torch.no_grad():
        first = gradient(subject, task).frame
    assert [weight.requires_grad for weight in subject.model.parameters()] == asking
    assert not frozen.requires_grad
    assert subject.model.training
    assert all(weight.grad is None for weight in subject.model.parameters())
    assert torch.equal(torch.random.get_rng_state(), state)
    assert first.equals(gradient(subject, task).frame)  # no dropout, although in training mode
