"""Chapter: what the heads that matter most cost in the task's own metric, such as BLEU."""

from __future__ import annotations

import numpy as np

from headcount.columns import Column
from headcount.heads import Head
from headcount.importance.agreement import GROUP
from headcount.importance.costs import costs_of
from headcount.importance.origin import origin
from headcount.progress import Progress
from headcount.stages.affordable import affordable
from headcount.stages.own_metric import metric_in_words, own_metric
from headcount.stages.scene import Chapter, Scene
from headcount.sweeps import Intervention, Sweep, sweep
from headcount.table import HeadTable
from headcount.tasks.task import Task

__all__ = ["own_metric_chapter"]

#: Heads that are tried in a quick story, and the multiplications it may take.
_FEW, _BUDGET = 6, 3e11


def own_metric_chapter(scene: Scene) -> Chapter:
    """The heads whose ablation costs most loss, tried by what people judge the task by."""
    task = own_metric(scene)
    title = "What the most important heads cost the task"
    if task is None:
        why = scene.why_no_task or "the task has no metric besides its loss"
        return Chapter("own-metric", title, why_not=why)
    title = f"What the most important heads cost in {metric_in_words(task)}"
    count = len(scene.heads) if scene.thorough else _FEW
    if not scene.thorough and scene.limit is None:
        task = task.limit(
            affordable(task, scene.subject, 7.0 * (count + 1), _BUDGET), scene.seed or 0
        )
    chosen = task
    settings = {**scene.about_task(task), "heads": count}

    def work(progress: Progress) -> list[str]:
        heads = _most_important(scene.read(), count)
        fingerprint = {**settings, "what": "own metric", "weights": scene.subject.weights_hash}
        with scene.run.journal(fingerprint, "own-metric") as journal:
            found = sweep(
                scene.subject,
                chosen,
                [Intervention([head]) for head in heads],
                metric="task",
                batch_size=scene.batch_size,
                journal=journal,
                name="own metric",
                progress=progress,
                announce=scene.announce,
            )
        scene.keep(_table(scene, chosen, heads, found))
        scene.run.drop_journal("own-metric")
        return [f"{len(heads)} of {len(scene.heads)} heads, those whose ablation costs most loss."]

    return Chapter("own-metric", title, settings, work, task, 7.0 * (count + 1) * len(task))


def _most_important(table: HeadTable | None, count: int) -> list[Head]:
    assert table is not None  # the chapter before this one wrote it
    worth = np.nan_to_num(table.numbers("ablation"), nan=-np.inf)
    order = np.argsort(-worth, kind="stable")[:count]
    return sorted(table.heads[place] for place in order)


def _table(scene: Scene, task: Task, heads: list[Head], found: Sweep) -> HeadTable:
    """A column that is NA for the heads that were not tried."""
    costs = costs_of(found)
    name = f"ablation_{task.metric.name}"
    rows = [scene.heads.index(head) for head in heads]

    def spread(values: np.ndarray) -> np.ndarray:
        room = np.full(len(scene.heads), np.nan)
        room[rows] = values
        return room

    settings = {"metric": task.metric.name, "baseline": found.baseline.value, "mode": "zero"}
    return HeadTable.of(
        scene.heads,
        {name: spread(costs.value), f"{name}_p_adjusted": spread(costs.p_adjusted)},
        _columns(name, task),
        low={name: spread(costs.low)},
        high={name: spread(costs.high)},
        notes={name: "; ".join(["only the heads whose ablation costs most loss", *costs.notes])},
        provenance=origin(scene.subject, task, settings=settings, remarks=found.notes),
    )


def _columns(name: str, task: Task) -> list[Column]:
    paper = "Michel et al. 2019, section 3.2"
    return [
        Column(
            name,
            meaning=f"How much {metric_in_words(task)} falls without the head.",
            unit=metric_in_words(task),
            paper=paper,
            group=GROUP,
            more="more important",
            format="+.3g",
            diverging=True,
        ),
        Column(
            f"{name}_p_adjusted",
            meaning=f"The p value of {name}, after Holm over the heads that were tried.",
            paper=paper,
            group=GROUP,
            range=(0, 1),
            format=".2g",
        ),
    ]
