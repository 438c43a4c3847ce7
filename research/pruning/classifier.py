"""One classifier with its rows: what heads are ranked on, what gates learn from, what judges."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import headcount as hc
from headcount.errors import InputError
from headcount.tasks import Task
from research.glue.encoded import Encoded, encode
from research.glue.model import build
from research.glue.rows import LABELS
from research.glue.toy import toy_rows, toy_subject

from .config import Config
from .judge import WIDTHS

__all__ = ["Case", "read_case"]


@dataclass(frozen=True)
class Case:
    """A classifier and its data on the device."""

    name: str
    subject: hc.Subject
    train: Task
    held: Task
    rows: Encoded
    judging: Encoded  # the held-out examples
    width: int


def read_case(
    name: str, config: Config, folder: Path | None, data: Path | None, device: str
) -> Case:
    """The classifier `name` ("minilm-sst2-0") from a folder of them; heads are ranked on train."""
    model, task, _ = name.split("-")
    settings = config.classifiers
    subject = _toy(task, device) if model == "toy" else _loaded(name, folder, device)
    train, held = _parts(task, config, data)
    width = settings.widths[task]
    chosen = train.limit(min(settings.learn, len(train)), config.seed)
    assert subject.tokenizer is not None
    rows, judging = (
        encode(part.examples, subject.tokenizer, LABELS[task], longest).to(device)
        for part, longest in ((chosen, width), (held, WIDTHS[-1]))
    )
    return Case(name, subject, train, held, rows, judging, width)


def _loaded(name: str, folder: Path | None, device: str) -> hc.Subject:
    if folder is None or not (folder / name).is_dir():
        raise InputError(f"There is no classifier {name} in {folder}; say --classifiers DIR.")
    subject = hc.load(str(folder / name), device=device)
    subject.name, subject.source = name, name  # no path of a machine
    return subject


def _toy(task: str, device: str) -> hc.Subject:
    bare = toy_subject()
    model: Any = build(bare, len(LABELS[task]))
    model.config.id2label = dict(enumerate(LABELS[task]))
    model.config.label2id = {label: place for place, label in enumerate(LABELS[task])}
    return hc.Subject(model.to(device), bare.tokenizer, name=f"toy-{task}")


def _parts(task: str, config: Config, data: Path | None) -> tuple[Task, Task]:
    if config.toy:
        made = toy_rows(task, config.toy)
        whole = hc.tasks.classification([(row.text, row.label) for row in made.train + made.dev])
        cut = len(made.train)
        return whole.part(range(cut)), whole.part(range(cut, len(whole)))
    if data is None:
        raise InputError("The GLUE files are needed: pass --data DIR, or set HEADCOUNT_DATA.")
    train = hc.tasks.glue(task, data / "glue", split="train", metric="accuracy")
    held = [
        hc.tasks.glue(task, data / "glue", split=split, metric="accuracy")
        for split in config.classifiers.held[task]
    ]
    pooled = tuple(example for part in held for example in part.examples)
    name = " and ".join(part.name for part in held)
    return train, replace(held[0], examples=pooled, name=name)
