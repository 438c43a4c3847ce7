"""What all chapters of a story share: model, run, texts, task, and how far to go."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from headcount.heads import Head
from headcount.progress import Progress
from headcount.run import Run
from headcount.subject import Subject
from headcount.table import HeadTable
from headcount.tasks.task import Task
from headcount.text import Corpus

__all__ = ["Chapter", "Scene"]


@dataclass(frozen=True)
class Chapter:
    """One step of the story: what it is, what it depends on, and how it is done."""

    #: The stage of the run that it is kept under.
    name: str
    #: What people are told it does.
    title: str
    #: All that its figures depend on besides the model: with the same it is not done again.
    settings: Mapping[str, Any] = field(default_factory=dict)
    #: Does it, and puts what it finds into the run; returns what to note.
    work: Callable[[Progress], list[str]] = lambda progress: []
    #: The examples that it uses, where it uses any.
    task: Task | None = None
    #: Forwards of one text that it takes, roughly; for a forecast alone.
    forwards: float = 0.0
    #: Why it cannot be told of this model; empty where it can.
    why_not: str = ""


@dataclass(frozen=True)
class Scene:
    """A model in front of its texts, with the run that keeps what is found."""

    run: Run
    subject: Subject
    #: What is read: sentences, or pairs.
    texts: Corpus
    treebank: Corpus | None = None
    coref: Corpus | None = None
    #: Whether the texts are the user's, rather than the bundled sample.
    own_text: bool = True
    #: What good means; None where nobody said and the model does nothing by itself.
    task: Task | None = None
    why_no_task: str = ""
    thorough: bool = False
    limit: int | None = None
    seed: int | None = None
    batch_size: int = 16
    #: Told, before long work, how long it will take.
    announce: Callable[[str], None] | None = None

    @property
    def heads(self) -> list[Head]:
        """The model's heads."""
        return self.subject.heads

    def read(self) -> HeadTable | None:
        """The run's table as it is now."""
        return self.run.read_table() if self.run.has_table else None

    def keep(self, table: HeadTable) -> None:
        """Put columns and details into the run, beside what is there."""
        old = self.read()
        self.run.write_table(table if old is None else old.join(table, replace=True))

    def begin(self) -> None:
        """Refuse a run of another model before the long work."""
        weights = {"weights": self.subject.weights_hash}
        self.run.check_subject(HeadTable.of(self.heads, {}, provenance=weights))

    def some_texts(self, count: int) -> Corpus:
        """So many texts for a quick story, drawn from all of them; all for a thorough one."""
        if self.thorough or self.limit is not None:
            return self.texts
        return self.texts.limit(count, self.seed or 0)

    @property
    def about_texts(self) -> dict[str, Any]:
        """The texts, in settings."""
        read = {"texts": self.texts, "treebank": self.treebank, "coref": self.coref}
        found = {name: corpus.hash for name, corpus in read.items() if corpus is not None}
        return {**found, "seed": self.seed}

    def about_task(self, task: Task) -> dict[str, Any]:
        """A task, in settings."""
        return {"task": task.hash, "metric": task.metric.name, "seed": self.seed}
