"""The rows that a model learns from and those it is judged on, for one task."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from headcount.rooms.labels.labelled import SETS, glue
from headcount.tasks import Labelled

__all__ = ["LABELS", "METRICS", "Rows", "cut_by_text", "read_rows"]

#: What each task is scored by; the first is the one that papers quote.
METRICS = {
    "sst2": ("accuracy",),
    "mrpc": ("f1", "accuracy"),
    "rte": ("accuracy",),
    "cola": ("matthews", "accuracy"),
    "stsb": ("spearman", "pearson"),
    "qnli": ("accuracy",),
}
#: The classes in the order of the model's outputs; none where the label is a number.
LABELS = {
    name: found.labels or (() if found.kind == "regression" else ("0", "1"))
    for name, found in SETS.items()
}


@dataclass(frozen=True)
class Rows:
    """A task's rows to learn from and to be judged on."""

    train: tuple[Labelled, ...]
    dev: tuple[Labelled, ...]
    note: str = ""


def read_rows(task: str, folder: Path) -> Rows:
    """GLUE's train and dev rows; QNLI without a train file has its dev rows cut in two."""
    dev = glue(task, folder, split="dev").examples
    if task != "qnli" or any((folder / SETS[task].folder).glob("train.tsv*")):
        return Rows(glue(task, folder, split="train").examples, dev)
    train, held = cut_by_text(dev)
    asked = [len({row.text for row in part}) for part in (train, held)]
    note = f"no train file: dev cut by question, {asked[0]} to learn from and {asked[1]} held out"
    return Rows(train, held, note)


def cut_by_text(
    rows: Sequence[Labelled], share: float = 0.2, seed: int = 0
) -> tuple[tuple[Labelled, ...], tuple[Labelled, ...]]:
    """Rows in two parts, the second with a share of the distinct first texts, drawn by seed.

    >>> rows = [Labelled(f"question {number // 2}", "yes") for number in range(20)]
    >>> train, held = cut_by_text(rows)
    >>> len(train), len(held), {row.text for row in train} & {row.text for row in held}
    (16, 4, set())
    """
    texts = sorted({row.text for row in rows})
    drawn = set(random.Random(seed).sample(texts, round(share * len(texts))))
    train = tuple(row for row in rows if row.text not in drawn)
    return train, tuple(row for row in rows if row.text in drawn)
