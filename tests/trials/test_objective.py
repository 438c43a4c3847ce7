"""The loss a model is asked for: its own, or how far its vector moves."""

from __future__ import annotations

from dataclasses import replace

import pytest
import tiny_subjects
import torch
from tiny_tokenizers import ENGLISH, PAIRS
from torch.nn.functional import cosine_similarity

from headcount.errors import UsageError
from headcount.models.subject import Subject
from headcount.survey.trials.noop import MaskedEmbedding, loss_per_target, objective_of
from headcount.tasks.regression import embed


@pytest.mark.parametrize(
    ("subject", "texts", "kind"),
    [
        (tiny_subjects.filler(), ENGLISH, "mlm"),
        (tiny_subjects.encoder(), ENGLISH, "masked embedding"),
        (tiny_subjects.classifier(), ENGLISH, "masked embedding"),
        (tiny_subjects.writer(), ENGLISH, "lm"),
        (tiny_subjects.translator(), PAIRS, "translation"),
    ],
    ids=["filler", "encoder", "classifier", "writer", "translator"],
)
def test_every_kind_of_model_has_one(subject: Subject, texts: list[str], kind: str) -> None:
    objective = objective_of(subject, texts)
    assert objective.kind == kind
    assert len(objective) == len(texts)
    for batch in objective.batches(subject, 4):
        losses = objective.loss(subject, batch)
        assert losses.shape == (len(batch),)
        assert bool((losses > 0).all())


def test_the_vector_of_the_whole_text_is_held_fixed() -> None:
    subject = tiny_subjects.encoder()
    objective = objective_of(subject, ENGLISH)
    assert isinstance(objective, MaskedEmbedding)
    batch = next(objective.batches(subject, 3))
    whole = replace(batch, inputs=batch.inputs | {"input_ids": batch.sides["source"].ids})
    assert bool((batch.inputs["input_ids"] != whole.inputs["input_ids"]).any(dim=1).all())
    wanted = 1 - cosine_similarity(embed(subject, batch), embed(subject, whole))
    torch.testing.assert_close(objective.loss(subject, batch), wanted)


def test_a_loss_over_tokens_is_shared_out() -> None:
    subject = tiny_subjects.filler()
    objective = objective_of(subject, ENGLISH)
    batch = next(objective.batches(subject, 4))
    assert batch.labels is not None
    hidden = (batch.labels != -100).sum(-1)
    losses = torch.ones(4)
    assert loss_per_target(losses, batch).tolist() == (losses / hidden).tolist()
    assert loss_per_target(losses, replace(batch, labels=None)) is losses
    assert loss_per_target(losses, replace(batch, labels=torch.ones(4))) is losses


def test_a_model_that_predicts_nothing_is_told() -> None:
    subject = tiny_subjects.writer("llama", model_class="LlamaModel")
    with pytest.raises(UsageError, match=r"LlamaModel, which predicts no tokens.* pass a task"):
        objective_of(subject, ENGLISH)
