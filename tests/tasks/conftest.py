"""Fixtures of the task tests: a translator small enough to be taught on the spot."""

from __future__ import annotations

import pytest
import torch
from tiny_subjects import translator
from tiny_tokenizers import PAIRS

from headcount import tasks
from headcount.models.subject import Subject


@pytest.fixture(scope="session")
def taught() -> Subject:
    """A Marian of one layer that has learnt ten sentences, not all of them well.

    Taught with the loss of its own task, which is thereby shown to be one. Leave it as it is.
    """
    subject = translator(encoder_layers=1, decoder_layers=1, max_position_embeddings=128)
    task = tasks.translation(PAIRS, metric="loss")
    [batch] = task.batches(subject, batch_size=len(PAIRS))
    optimizer = torch.optim.Adam(subject.model.parameters(), lr=1e-2)
    for _ in range(55):
        optimizer.zero_grad()
        task.loss(subject, batch).mean().backward()
        optimizer.step()
    subject.model.zero_grad(set_to_none=True)
    return subject
