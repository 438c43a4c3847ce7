"""A session of training, from a subject to a trained one: what learned gates and healing share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from copy import deepcopy
from dataclasses import asdict, dataclass, is_dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd
from torch import nn

from headcount.errors import UsageError
from headcount.progress import Progress
from headcount.pruning.accelerated import accelerated
from headcount.pruning.checkpoint import Checkpoint
from headcount.pruning.gates import Gates
from headcount.pruning.lessons import Lessons, ReadyLessons, TaskLessons
from headcount.pruning.loss import Loss, OwnLoss, TaskLoss
from headcount.pruning.objective import Penalty, Target
from headcount.pruning.recipe import Recipe
from headcount.pruning.trainable import Chosen, borrowed, describe_chosen, trainable
from headcount.pruning.training import Learner, Row, Training, check_precision
from headcount.subject import Subject
from headcount.tasks.task import Task
from headcount.wiring.valves import valve

__all__ = ["Lesson", "Session"]

#: A task, or batches with labels that the model's forward takes.
Lesson = Task | Iterable[Mapping[str, Any]]


@dataclass(frozen=True, kw_only=True)
class Session:
    """Everything about a training but the subject."""

    kind: str
    task: Lesson
    recipe: Recipe
    train: Chosen = "all"
    teacher: Subject | None = None
    share: float = 0.7
    smoothing: float = 0.0
    gates: Gates | None = None
    penalty: Penalty | None = None
    gate_lr: float = 0.0
    in_place: bool = False
    checkpoint: str | Path | None = None
    accelerator: Any = None
    log: Callable[[Row], None] | None = None
    progress: Progress | None = None

    def __call__(self, subject: Subject) -> tuple[Subject, pd.DataFrame]:
        """Train a copy, or the subject itself where that is asked, and give the log.

        On any exit no hook stays, and weights ask for gradients as before.
        """
        names = trainable(subject, self.train)
        check_precision(subject, names)
        with accelerated(subject, self.accelerator, self.recipe.mixed_precision) as fleet:
            learning = self._placed(subject, fleet, trains=bool(names))
            lessons, loss = self._lessons(learning, fleet.num_processes)
            desk = self._desk(subject, lessons, fleet.num_processes)
            learner = Learner(learning, loss, self.gates, self.penalty, self.recipe.seed)
            with ExitStack() as stack:
                weights = stack.enter_context(borrowed(learning.model, names))
                if self.gates is not None:
                    learner.opened = stack.enter_context(valve(learning, learner.ones))
                rows = self._training(learner, weights, lessons, fleet, desk).run()
        learning.__dict__.pop("weights_hash", None)  # it has other weights now
        return learning, rows

    def _training(
        self,
        learner: Learner,
        weights: Mapping[str, nn.Parameter],
        lessons: Lessons,
        fleet: Any,
        desk: Checkpoint | None,
    ) -> Training:
        return Training(
            learner,
            weights,
            lessons,
            self.recipe,
            fleet,
            gate_lr=self.gate_lr,
            checkpoint=desk,
            log=self.log,
            progress=self.progress,
        )

    def _placed(self, subject: Subject, fleet: Any, trains: bool) -> Subject:
        """The model to train, on the device of this process, and the gates beside it."""
        moves = fleet.num_processes > 1 and fleet.device != subject.device
        found = subject
        if not self.in_place and (trains or moves):
            found = replace(subject, model=deepcopy(subject.model), notes=list(subject.notes))
        if moves:
            found.model.to(fleet.device)
        for part in (self.gates, self.penalty):
            if isinstance(part, nn.Module):
                part.to(found.device)
        return found

    def _lessons(self, subject: Subject, processes: int) -> tuple[Lessons, Loss]:
        """The batches to learn from and the loss to learn by."""
        recipe = self.recipe
        if isinstance(self.task, Task):
            lessons = TaskLessons(self.task, subject, recipe.batch_size, recipe.seed, processes)
            return lessons, TaskLoss(self.task, self.teacher, self.share, self.smoothing)
        if self.teacher is not None or self.smoothing:
            raise UsageError(
                "Batches of your own come with the model's own loss; a teacher or smoothed labels "
                "need a task of hc.tasks."
            )
        return ReadyLessons(self.task, recipe.seed, processes), OwnLoss()

    def _desk(self, subject: Subject, lessons: Lessons, processes: int) -> Checkpoint | None:
        """Where the state is kept, with what must be the same to go on."""
        if self.checkpoint is None:
            return None
        taught = None if self.teacher is None else self.teacher.weights_hash
        record: dict[str, Any] = {
            "kind": self.kind,
            "model": subject.weights_hash,
            "lessons": lessons.describe(),
            **self.recipe.describe(),
            "train": describe_chosen(self.train),
            "teacher": taught,
            "share": self.share if taught is not None else None,
            "smoothing": self.smoothing,
            "processes": processes,
        }
        if self.gates is not None:
            record["heads"] = list(self.gates.heads)
            record["convention"] = self.gates.convention
            record["gates_begin"] = self.gates.log_a.tolist()
            record |= {"gate_lr": self.gate_lr, "penalty": _describe(self.penalty)}
        return Checkpoint(self.checkpoint, record)


def _describe(penalty: Penalty | None) -> Any:
    """A price as a record keeps it; a function is kept by its name."""
    if isinstance(penalty, Target):
        names = ("count", "steps", "rate", "stiffness", "hard")
        return {"target": {name: getattr(penalty, name) for name in names}}
    if is_dataclass(penalty) and not isinstance(penalty, type):
        return {n: v if not callable(v) else _name(v) for n, v in asdict(penalty).items()}
    return _name(penalty)


def _name(function: object) -> str:
    return str(getattr(function, "__name__", type(function).__name__))
