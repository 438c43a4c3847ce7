"""Chapter: how far heads can go, along an order, by the loss and by what the task is judged by."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from headcount.journal import Journal
from headcount.progress import Progress
from headcount.prune_orders import How, Orders
from headcount.pruning.curve import curve_frame, curve_sweep
from headcount.pruning.goal import Goal
from headcount.pruning.order import Order
from headcount.stages.affordable import affordable
from headcount.stages.own_metric import own_metric
from headcount.stages.scene import Chapter, Scene
from headcount.sweeps.measure import measured
from headcount.tasks.task import Task

__all__ = ["curve_chapter"]

_NAME, _TITLE = "curve", "How far heads can go"
#: A tenth of all heads a step: at most 10 points with the whole model.
_STEP = 10.0
#: Multiplications for the loss, and for output that the model speaks itself.
_BUDGET, _SPOKEN = 1e12, 4.5e11
#: More examples than this make a quick curve no clearer.
_MOST = 200


def curve_chapter(scene: Scene) -> Chapter:
    """Heads are ordered on one half of the examples; the other half judges what is left."""
    if scene.task is None:
        return Chapter(_NAME, _TITLE, why_not=scene.why_no_task)
    task = _cut(scene, measured(scene.task), 11, _BUDGET)
    if len(task) < 4:
        return Chapter(_NAME, _TITLE, why_not=f"{task.name} has {len(task)} examples, too few.")
    names = ["gradient", *(["ablation"] if scene.thorough else []), "random"]
    settings = {**scene.about_task(task), "by": names, "step": _STEP}

    def work(progress: Progress) -> list[str]:
        fingerprint = {**settings, "what": "curve", "weights": scene.subject.weights_hash}
        with scene.run.journal(fingerprint, _NAME) as journal:
            frame, notes = _Curve(scene, task, names, journal, progress).measured()
        scene.run.write_frame(_NAME, frame)
        scene.run.drop_journal(_NAME)
        return notes

    spoken = 0 if own_metric(scene) is None else 70 * min(40, len(task) / 2)
    return Chapter(_NAME, _TITLE, settings, work, task, 11 * len(task) + spoken)


class _Curve:
    """The points of the curve, one journal for all of them."""

    def __init__(
        self, scene: Scene, task: Task, names: list[str], journal: Journal, progress: Progress
    ) -> None:
        self.scene, self.names, self.journal, self.progress = scene, names, journal, progress
        self.choose, self.held_out = task.split(0.5, scene.seed or 0)

    def measured(self) -> tuple[pd.DataFrame, list[str]]:
        """The curve by the loss, then by the task's own metric along the first order."""
        how = How(step=_STEP, randoms=1, batch_size=self.scene.batch_size)
        orders = Orders(self.scene.subject, self.choose, how, journal=self.journal)
        made = orders.of(self.names, Goal())
        frames, notes = [], []
        for task, along in self._judged(made):
            frame, told = self._one(task, along)
            frames.append(frame)
            notes += told
        return pd.concat(frames, ignore_index=True), list(dict.fromkeys(notes))

    def _judged(self, orders: list[Order]) -> list[tuple[Task, list[Order]]]:
        judged: list[tuple[Task, list[Order]]] = [(self.held_out, orders)]
        spoken = own_metric(self.scene)
        if spoken is not None:
            spoken = replace(spoken, examples=self.held_out.examples)
            judged.append((_cut(self.scene, spoken, 70, _SPOKEN), orders[:1]))
        return judged

    def _one(self, task: Task, orders: list[Order]) -> tuple[pd.DataFrame, list[str]]:
        found = curve_sweep(
            self.scene.subject,
            task,
            orders,
            name=f"curve {task.metric.name}",
            batch_size=self.scene.batch_size,
            journal=self.journal,
            progress=self.progress,
        )
        frame, notes = curve_frame(found, orders, heads=len(self.scene.heads), part="held-out")
        return frame, [*found.notes, *notes]


def _cut(scene: Scene, task: Task, forwards: float, budget: float) -> Task:
    if scene.thorough or scene.limit is not None:
        return task
    count = affordable(task, scene.subject, forwards, budget)
    return task.limit(min(_MOST, count), scene.seed or 0)
