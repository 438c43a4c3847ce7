"""Michel et al.'s importance, as their program computed it, matched on a real model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from headcount import tasks
from headcount.importance.gradient import gradient
from headcount.models.subject import Subject
from headcount.tasks.task import Task

HERE = Path(__file__).parent

pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def theirs() -> dict[str, np.ndarray]:
    with np.load(HERE / "michel.npz") as found:
        return {key: found[key] for key in found.files}


@pytest.fixture(scope="module")
def classifier(minilm: Subject, theirs: dict[str, np.ndarray]) -> Subject:
    """MiniLM under a three-way classifier with the reference's weights."""
    from transformers import BertForSequenceClassification

    settings = minilm.model.config.to_dict() | {"num_labels": 3, "id2label": {0: 0, 1: 1, 2: 2}}
    model = BertForSequenceClassification(type(minilm.model.config)(**settings)).eval()
    model.bert.load_state_dict(minilm.model.state_dict())
    with torch.no_grad():
        model.classifier.weight.copy_(torch.from_numpy(theirs["classifier_weight"]))
        model.classifier.bias.zero_()
    return Subject(model, minilm.tokenizer)


@pytest.fixture(scope="module")
def task(theirs: dict[str, np.ndarray]) -> Task:
    items = json.loads((HERE / "inputs.json").read_text())["own_single"]
    texts = [" ".join(item["words"]) for item in items]
    return tasks.classification(list(zip(texts, theirs["labels"].tolist(), strict=True)))


def test_the_logits_and_the_loss(classifier: Subject, task: Task, theirs: dict[str, Any]) -> None:
    logits = np.zeros((len(task), 3))
    for batch in task.batches(classifier, batch_size=20):
        with torch.no_grad():
            logits[batch.index] = task.answer(classifier, batch).numpy()
    np.testing.assert_allclose(logits, theirs["base_logits"], atol=1e-5)
    loss = tasks.classification(task.examples, metric="loss").evaluate(classifier).value
    assert loss == pytest.approx(float(theirs["base_loss"]), rel=1e-5)


@pytest.mark.parametrize("size", [1, 60])
@pytest.mark.parametrize(("normalize", "name"), [("none", "raw"), ("layer", "l2norm")])
def test_their_programs_figures(
    classifier: Subject, task: Task, theirs: dict[str, Any], size: int, normalize: Any, name: str
) -> None:
    ours = gradient(classifier, task, convention="code", batch_size=size, normalize=normalize)
    expected = theirs[f"importance_bs{size}_{name}"].ravel()
    np.testing.assert_allclose(ours.frame["gradient"], expected, rtol=1e-5)


@pytest.mark.parametrize("size", [1, 7, 60])
def test_the_papers_formula_at_any_batch_size(
    classifier: Subject, task: Task, theirs: dict[str, Any], size: int
) -> None:
    ours = gradient(classifier, task, batch_size=size).frame["gradient"]
    expected = theirs["own_variant_per_example_abs_mean"]
    np.testing.assert_allclose(ours, expected.ravel(), rtol=1e-5)
    normed = gradient(classifier, task, convention="paper", batch_size=size).frame["gradient"]
    layers = expected / np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(normed, layers.ravel(), rtol=1e-5)
