"""What people judge a task by, where that is more than its loss: BLEU, accuracy, a correlation."""

from __future__ import annotations

from dataclasses import replace

from headcount import tasks
from headcount.stages.scene import Scene
from headcount.tasks.task import Task
from headcount.tasks.translation import Translation

__all__ = ["metric_in_words", "own_metric"]

_WORDS = {"bleu": "BLEU", "chrf": "chrF", "f1": "F1"}


def own_metric(scene: Scene) -> Task | None:
    """The story's task with that metric; None where the loss is all there is."""
    task = scene.task
    if task is None or task.kind in ("lm", "mlm"):
        return None
    if isinstance(task, Translation) and task.metric.name == "loss":
        return replace(tasks.translation(task.examples, metric="bleu"), name=task.name)
    return task


def metric_in_words(task: Task) -> str:
    """A metric as people write it."""
    return _WORDS.get(task.metric.name, task.metric.name)
