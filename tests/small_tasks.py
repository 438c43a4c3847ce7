"""Small tasks of every kind, with a model for each."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import tiny_subjects
from torch import Tensor

from headcount import tasks
from headcount.models.subject import Subject
from headcount.tasks.task import Task

TEXTS = [
    "The cat sat on the mat.",
    "Rain fell on the old town all day.",
    "A dog barked.",
    "She reads books at night in the garden.",
    "He left.",
]
PAIRS = list(pairwise(TEXTS))


def hidden_sums(subject: Subject, texts: list[str]) -> Tensor:
    """A score of the caller's own."""
    fed = subject.tokenizer(texts, padding=True, return_tensors="pt")  # type: ignore[misc]
    return subject.model(**fed).last_hidden_state[:, 0].sum(dim=-1)


KINDS: dict[str, Callable[[], tuple[Subject, Task]]] = {
    "classification": lambda: (
        tiny_subjects.classifier(),
        tasks.classification([(text, len(text) % 2) for text in TEXTS], metric="f1"),
    ),
    "regression": lambda: (
        tiny_subjects.classifier(1),
        tasks.regression([(text, float(len(text))) for text in TEXTS]),
    ),
    "lm": lambda: (tiny_subjects.writer("llama"), tasks.lm(TEXTS, metric="perplexity")),
    "windows": lambda: (
        tiny_subjects.writer("gpt2", n_positions=8),
        tasks.lm(TEXTS, metric="perplexity"),
    ),
    "mlm": lambda: (tiny_subjects.filler(), tasks.mlm(TEXTS, metric="accuracy")),
    "similarity": lambda: (
        tiny_subjects.encoder(),
        tasks.similarity([(*pair, float(place)) for place, pair in enumerate(PAIRS)]),
    ),
    "translation": lambda: (
        tiny_subjects.translator(),
        tasks.translation(PAIRS, metric="chrf", beams=2, max_new_tokens=4),
    ),
    "custom": lambda: (
        tiny_subjects.encoder(),
        tasks.custom(TEXTS, lambda s, texts: hidden_sums(s, texts).tolist(), loss=hidden_sums),
    ),
}
