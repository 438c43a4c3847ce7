"""Chapters: how much every head matters, by several measures, and whether these agree."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headcount.importance.agreement import compared
from headcount.progress import Progress
from headcount.score import score
from headcount.stages.affordable import affordable
from headcount.stages.scene import Chapter, Scene
from headcount.tasks.task import Task

__all__ = ["ablation_chapter", "agreement_chapter", "gradient_chapter", "relevance_chapter"]

#: Multiplications that each chapter of a quick story may take: half a minute to two minutes.
_BUDGETS = {"gradient": 1e12, "relevance": 3.5e11, "ablation": 1.35e12}


def gradient_chapter(scene: Scene) -> Chapter:
    """How much the loss notices a head: one forward and one backward an example."""
    return _score_chapter(scene, "gradient", "How much the loss notices each head", forwards=3)


def relevance_chapter(scene: Scene) -> Chapter:
    """Which share of its predictions a head carries: a backward for every prediction."""
    title = "Which share of a prediction each head carries"
    return _score_chapter(scene, "relevance", title, forwards=40)


def ablation_chapter(scene: Scene) -> Chapter:
    """What happens without a head: the task once for every head, by its loss."""
    title = "What happens without each head, by loss"
    return _score_chapter(scene, "ablation", title, forwards=0.6 * len(scene.heads))


def agreement_chapter(scene: Scene) -> Chapter:
    """Whether the measures rank heads alike."""

    def work(progress: Progress) -> list[str]:
        table = scene.read()
        frame = None if table is None else compared(table)
        if frame is None:
            return ["There are not two measures of importance to compare."]
        scene.run.write_frame("agreement", frame)
        return []

    stages = scene.run.stages
    settings = {name: stages[name]["finished"] for name in stages if name.startswith("score-")}
    return Chapter(
        "agreement", "Whether the measures agree", settings, work, why_not=scene.why_no_task
    )


def _score_chapter(scene: Scene, name: str, title: str, *, forwards: float) -> Chapter:
    if scene.task is None:
        return Chapter(f"score-{name}", title, why_not=scene.why_no_task)
    task = _afforded(scene, scene.task, forwards, _BUDGETS[name])
    settings: Mapping[str, Any] = {**scene.about_task(task), "convention": "headcount"}

    def work(progress: Progress) -> list[str]:
        table = score(
            scene.subject,
            task,
            by=name,
            run=scene.run,
            batch_size=scene.batch_size,
            seed=scene.seed,
            progress=lambda _, done, total: progress(done, total),
            announce=scene.announce,
        )
        told = table.origins.get(name, table.provenance).get("remarks", ())
        return [*told, *_cut(scene.task, task)]

    return Chapter(f"score-{name}", title, settings, work, task, forwards * len(task))


def _afforded(scene: Scene, task: Task, forwards: float, budget: float) -> Task:
    """All of the task for a thorough story or a limit of the user's, else as much as is quick."""
    if scene.thorough or scene.limit is not None:
        return task
    return task.limit(affordable(task, scene.subject, forwards, budget), scene.seed or 0)


def _cut(whole: Task | None, task: Task) -> list[str]:
    if whole is None or len(whole) == len(task):
        return []
    return [f"{len(task):,} of {len(whole):,} examples were used; --thorough takes all."]
