"""Pruned models that train on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from model_state import assert_same, state_of
from small_tasks import KINDS, TEXTS
from tiny_subjects import classifier, filler

from headcount import tasks
from headcount.errors import UsageError
from headcount.models.subject import Subject
from headcount.pruning.learn import heal, scratch
from headcount.pruning.recipe import TaskLoss
from headcount.pruning.remove import prune
from headcount.tasks.task import Task

QUICK: dict[str, Any] = {"steps": 12, "batch_size": 3, "lr": 1e-3, "log_every": 3}


def sentiment() -> Task:
    return tasks.classification([(text, len(text) % 2) for text in TEXTS])


def calm(subject: Subject) -> Subject:
    """Nothing drops out: a few steps show what they teach."""
    for module in subject.model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    return subject


@pytest.mark.parametrize("kind", ["classification", "regression", "lm", "mlm", "translation"])
def test_a_taught_model_comes_nearer_to_its_teacher(kind: str) -> None:
    teacher, task = KINDS[kind]()
    small = calm(prune(teacher, teacher.heads[: len(teacher.heads) // 2]))
    before, whole = state_of(small), state_of(teacher)
    healed = heal(small, task, teacher=teacher, share=1.0, **QUICK)
    assert_same(before, state_of(small))
    assert_same(whole, state_of(teacher))
    assert healed.subject.heads == small.heads

    def apart(subject: Any) -> float:
        loss = TaskLoss(task, teacher, share=1.0)
        with torch.no_grad():
            return sum(float(loss(subject, b)[0]) for b in task.batches(subject, 3))

    assert apart(healed.subject) < apart(small)
    assert apart(teacher) == pytest.approx(0.0, abs=1e-4)


def test_without_a_teacher_the_task_alone_teaches() -> None:
    small = calm(prune(classifier(), "enc.0.1"))
    healed = heal(small, sentiment(), **(QUICK | {"steps": 40}))
    assert healed.log["loss"].iloc[-1] < healed.log["loss"].iloc[0]
    assert repr(healed).startswith("Healed(tiny bert without 1 head: loss ")


def test_the_loss_is_the_tasks_own() -> None:
    for kind in ("classification", "regression", "lm", "windows", "mlm", "similarity", "custom"):
        subject, task = KINDS[kind]()
        for batch in task.batches(subject, 2):
            with torch.no_grad():
                total, count = TaskLoss(task)(subject, batch)
                own = task.loss(subject, batch)
            assert float(total) == pytest.approx(float(own.sum()), rel=1e-5)
            assert count >= len(own)


def test_labels_are_smoothed() -> None:
    subject, task = classifier(), sentiment()
    batch = next(task.batches(subject, 5))
    with torch.no_grad():
        logits = subject.model(**batch.inputs).logits.log_softmax(-1)
        smooth, _ = TaskLoss(task, smoothing=0.2)(subject, batch)
    assert batch.labels is not None
    right = logits.gather(1, batch.labels[:, None])[:, 0]
    assert float(smooth) == pytest.approx(float(-(0.8 * right + 0.2 * logits.mean(1)).sum()))


def test_a_layer_without_heads_stays_without() -> None:
    small = prune(filler(), "enc.0")
    healed = heal(small, KINDS["mlm"]()[1], **(QUICK | {"weight_decay": 0.1}))
    layer = healed.subject.model.bert.encoder.layer[0].attention
    assert not layer.self.value.weight.any()
    assert not layer.output.dense.weight.any()
    assert layer.output.dense.bias.any()


def test_healing_goes_on(tmp_path: Path) -> None:
    small = prune(classifier(), "enc.0.1")

    def stop(done: int, total: int) -> None:
        if done == 7:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        heal(small, sentiment(), checkpoint=tmp_path, progress=stop, save_every=5, **QUICK)
    resumed = heal(small, sentiment(), checkpoint=tmp_path, save_every=5, **QUICK)
    unbroken = heal(small, sentiment(), **QUICK)
    assert resumed.subject.weights_hash == unbroken.subject.weights_hash
    assert resumed.log.equals(unbroken.log)


def test_from_scratch_only_these_heads_are_there() -> None:
    whole = classifier()
    fresh = calm(scratch(whole, "enc.0.1,enc.1.0-1", seed=3))
    assert [str(head) for head in fresh.heads] == ["enc.0.1", "enc.1.0", "enc.1.1"]
    assert scratch(whole, "enc.0.1,enc.1.0-1", seed=3).weights_hash == fresh.weights_hash
    healed = heal(fresh, sentiment(), **(QUICK | {"steps": 60}))
    assert healed.log["loss"].iloc[-1] < healed.log["loss"].iloc[0]


def test_what_cannot_be_is_refused() -> None:
    other = classifier(3)
    with pytest.raises(UsageError, match="The teacher has 3 classes or words and the learner 2"):
        heal(classifier(), sentiment(), teacher=other, **QUICK)
    subject, task = KINDS["custom"]()
    with pytest.raises(UsageError, match="A custom task gives its loss and nothing"):
        heal(subject, task, teacher=subject, **QUICK)
    number, numbers = KINDS["regression"]()
    with pytest.raises(UsageError, match="A regression task has no classes"):
        heal(number, numbers, smoothing=0.1, **QUICK)
