"""Michel et al.'s importance again, from its definition: example by example, token by token."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from surgery import projection
from tiny_subjects import classifier, translator
from tiny_tokenizers import PAIRS
from torch import Tensor, nn

from headcount import tasks
from headcount.importance.gradient import gradient
from headcount.models.subject import Subject
from headcount.records.heads import Head
from headcount.tasks.task import Task

LABELLED = [(source, number % 3) for number, (source, _) in enumerate(PAIRS)]
CLASSES = tasks.classification(LABELLED)
TRANSLATIONS = tasks.translation(PAIRS)


def contexts(subject: Subject, task: Task, batch: Any) -> dict[tuple[str, int], Tensor]:
    """Att · dL/dAtt of the summed loss, `[row, query, head]` by stack and layer."""
    kept: dict[tuple[str, int], Tensor] = {}
    handles = []
    for site in subject.anatomy.sites:

        def keep(_: nn.Module, args: Any, key: Any = (site.stack, site.layer)) -> None:
            args[0].retain_grad()
            kept[key] = args[0]

        handles.append(projection(subject, site).register_forward_pre_hook(keep))
    task.loss(subject, batch).sum().backward()
    for handle in handles:
        handle.remove()
    subject.model.zero_grad()
    return {
        (site.stack, site.layer): (kept[site.stack, site.layer] * kept[site.stack, site.layer].grad)
        .detach()
        .unflatten(-1, (site.heads, site.head_dim))
        .sum(-1)
        for site in subject.anatomy.sites
    }


def tokens(batch: Any, head: Head, row: int) -> int:
    return int(batch.query(head.stack).real[row].sum())


def slow(subject: Subject, task: Task, per: str) -> list[float]:
    """The mean over examples, or over tokens, of absolute slopes."""
    batches = list(task.batches(subject, batch_size=1))
    found = [contexts(subject, task, batch) for batch in batches]
    scores = []
    for head in subject.heads:
        total = count = 0.0
        for batch, slopes in zip(batches, found, strict=True):
            column = slopes[head.stack, head.layer][0, :, head.index].tolist()
            if per == "example":
                total, count = total + abs(sum(column)), count + 1
            else:
                total = total + sum(abs(slope) for slope in column)
                count = count + tokens(batch, head, 0)
        scores.append(total / count)
    return scores


def by_layer(heads: list[Head], scores: list[float]) -> list[float]:
    divided = []
    for head, score in zip(heads, scores, strict=True):
        mates = [s for h, s in zip(heads, scores, strict=True) if h[:2] == head[:2]]
        divided.append(score / sum(s * s for s in mates) ** 0.5)
    return divided


@pytest.mark.parametrize("per", ["example", "token"])
@pytest.mark.parametrize(
    ("make", "task"), [(lambda: classifier(3), CLASSES), (translator, TRANSLATIONS)]
)
def test_per_example_and_per_token(make: Callable[[], Subject], task: Task, per: Any) -> None:
    subject = make()
    expected = slow(subject, task, per)
    ours = gradient(subject, task, per=per, batch_size=4).frame["gradient"]
    np.testing.assert_allclose(ours, expected, rtol=1e-3)
    divided = gradient(subject, task, per=per, batch_size=4, normalize="layer").frame["gradient"]
    np.testing.assert_allclose(divided, by_layer(subject.heads, expected), rtol=1e-3)
    if per == "example":
        paper = gradient(subject, task, convention="paper").frame["gradient"]
        np.testing.assert_allclose(paper, divided, rtol=1e-4)


def test_the_program_for_classifiers() -> None:
    """Batch-mean loss, added up over batches; tokens below, but examples in the last layer."""
    subject, size = classifier(3), 4
    total = dict.fromkeys(subject.heads, 0.0)
    count = 0
    for start in range(0, len(CLASSES), size):
        part = CLASSES.part(range(start, min(start + size, len(CLASSES))))
        [batch] = part.batches(subject, batch_size=size)
        slopes = contexts(subject, part, batch)
        for head in subject.heads:
            mine = slopes[head.stack, head.layer][:, :, head.index] / len(batch)
            total[head] += float(mine.abs().sum())
        count += int(batch.sides["source"].real.sum())
    expected = [
        score / (len(CLASSES) if head.layer == 1 else count) for head, score in total.items()
    ]
    ours = gradient(subject, CLASSES, convention="code", batch_size=size).frame["gradient"]
    np.testing.assert_allclose(ours, expected, rtol=1e-3)
    other = gradient(subject, CLASSES, convention="code", batch_size=2).frame["gradient"]
    assert not np.allclose(other, ours, rtol=0.1)


def test_the_program_for_translators() -> None:
    """Summed loss; the decoder's padding counts below, the source's does not."""
    subject, size = translator(), 4
    total = dict.fromkeys(subject.heads, 0.0)
    count = {"enc": 0, "dec": 0, "cross": 0}
    for start in range(0, len(TRANSLATIONS), size):
        part = TRANSLATIONS.part(range(start, min(start + size, len(TRANSLATIONS))))
        [batch] = part.batches(subject, batch_size=size)
        slopes = contexts(subject, part, batch)
        for head in subject.heads:
            total[head] += float(slopes[head.stack, head.layer][:, :, head.index].abs().sum())
        count["enc"] += int(batch.sides["source"].real.sum())
        for stack in ("dec", "cross"):
            count[stack] += batch.sides["target"].real.numel()
    expected = [score / count[head.stack] for head, score in total.items()]
    ours = gradient(subject, TRANSLATIONS, convention="code", batch_size=size).frame["gradient"]
    np.testing.assert_allclose(ours, expected, rtol=1e-3)


def test_per_batch_takes_the_absolute_value_last() -> None:
    subject, size = classifier(3), 4
    batches = list(CLASSES.batches(subject, batch_size=size))
    expected = torch.zeros(len(subject.heads))
    for batch in batches:
        slopes = contexts(subject, CLASSES, batch)
        signed = [slopes[h.stack, h.layer][:, :, h.index].sum() for h in subject.heads]
        expected += torch.stack(signed).abs()
    ours = gradient(subject, CLASSES, per="batch", batch_size=size).frame["gradient"]
    np.testing.assert_allclose(ours, expected / len(CLASSES), rtol=1e-3)
    one = gradient(subject, CLASSES, per="batch", batch_size=1).frame["gradient"]
    np.testing.assert_allclose(one, gradient(subject, CLASSES).frame["gradient"], rtol=1e-3)
