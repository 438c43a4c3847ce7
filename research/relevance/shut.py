"""What every head is worth to every prediction: how far its output falls when the head is shut."""

from __future__ import annotations

import torch
from torch import Tensor

import headcount as hc
from headcount.rooms.labels.labelled import Similarity
from headcount.tasks.task import IGNORED, Task, forward
from headcount.text.batch import Batch


def falls(subject: hc.Subject, task: Task, batch: Batch) -> Tensor:
    """Fall of each prediction for each head, ``[prediction, head]``, rows before places."""
    with torch.no_grad():
        chosen = _chosen(subject, task, batch)
        whole = _values(subject, task, batch, chosen)
        columns = []
        for head in subject.heads:
            with hc.valve(subject, {str(head): 0.0}):
                columns.append(whole - _values(subject, task, batch, chosen))
    return torch.stack(columns, dim=-1)


def _chosen(subject: hc.Subject, task: Task, batch: Batch) -> Tensor | None:
    """The words that the whole model puts first."""
    if isinstance(task, Similarity):
        return None
    return forward(subject, batch).logits.argmax(dim=-1, keepdim=True)


def _values(subject: hc.Subject, task: Task, batch: Batch, chosen: Tensor | None) -> Tensor:
    if isinstance(task, Similarity):
        return task.answer(subject, batch)
    assert batch.labels is not None
    assert chosen is not None
    logits = forward(subject, batch).logits.gather(2, chosen)[..., 0]
    return logits[batch.labels != IGNORED]
