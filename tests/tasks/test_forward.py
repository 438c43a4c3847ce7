from __future__ import annotations

import pytest
import torch
from tiny_subjects import filler, writer
from tiny_tokenizers import ENGLISH

from headcount import tasks
from headcount.errors import ModelError
from headcount.tasks.task import forward, logits_of


def test_nothing_is_cached_on_the_way() -> None:
    subject = writer()
    [batch] = tasks.lm(ENGLISH).batches(subject)
    assert forward(subject, batch).past_key_values is None


def test_logits_are_those_of_the_model() -> None:
    subject = filler()
    [batch] = tasks.mlm(ENGLISH).batches(subject)
    logits = logits_of(subject, batch, axes=3, needs="x")
    assert torch.equal(logits, subject.model(**batch.inputs).logits)


def test_other_logits_are_refused() -> None:
    subject = filler()
    [batch] = tasks.mlm(ENGLISH).batches(subject)
    with pytest.raises(ModelError, match=r"^x, and tiny bert is of the class BertForMaskedLM\.$"):
        logits_of(subject, batch, axes=2, needs="x")
