"""The task that a plain corpus stands for, where a score needs predictions and got texts alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from headcount import tasks
from headcount.errors import UsageError
from headcount.subject import Subject
from headcount.tasks.task import Task
from headcount.text.corpus import Corpus, read_corpus
from headcount.text.sentence import Pair

__all__ = ["natural_task"]


def natural_task(subject: Subject, corpus: Any) -> Task:
    """What a model does with texts by itself: translate pairs, go on, fill in, compare two texts.

    >>> from headcount.models.load import load
    >>> natural_task(load("translator", device="cpu"), [("Rain fell.", "Regen fiel.")])
    Translation('texts in hand', 1 examples, loss)
    """
    if isinstance(corpus, Task):
        return corpus
    texts = read_corpus(corpus)
    return replace(_task(subject, texts), name=texts.name)


def _task(subject: Subject, texts: Corpus) -> Task:
    items = list(texts)
    speaks = subject.inner.get_output_embeddings() is not None
    if subject.kind == "enc-dec" and speaks:
        return tasks.translation(items, metric="loss")
    if subject.kind == "dec" and speaks:
        return tasks.lm(items)
    if subject.kind == "enc" and speaks:
        return tasks.mlm(items)
    if texts.paired:
        pairs = [item for item in items if isinstance(item, Pair)]
        return tasks.similarity([(pair.source, pair.target, 0.0) for pair in pairs])
    raise UsageError(
        f"{subject.name} ({type(subject.inner).__name__}) predicts no words, so single texts leave "
        "nothing to explain; give pairs of texts, whose cosine is explained, or a task such as "
        "tasks.classification(...)."
    )
