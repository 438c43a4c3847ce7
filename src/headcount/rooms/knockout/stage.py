"""Heads taken away in the story: whole jobs by the loss, the costliest by the task's own metric."""

from __future__ import annotations

from typing import Any

import numpy as np

from headcount import importance
from headcount.importance import sweep_task
from headcount.records import Column, Head, HeadTable, parse_heads
from headcount.reports import (
    Source,
    StageMaker,
    StoryContext,
    StoryStage,
    evaluation_step,
    figure,
    metric_title,
    own_metric,
)
from headcount.rooms.knockout.whole_jobs import DRAWS, knockout, role_sets
from headcount.surveys.roles import KINDS
from headcount.tasks import Task

#: What a quick story spends: multiplications, examples, and forwards of a usual table of roles.
_BUDGET, _EXAMPLES, _FORWARDS = 1.35e12, 96, 60


def knockout_stage(context: StoryContext) -> StoryStage:
    """All heads of a job off together, against as many other heads of their layers, by loss."""
    name, title = "knockout", "What happens without whole jobs"
    if context.task is None:
        return StoryStage(name, title, why_not=context.why_no_task)
    whole = sweep_task(context.task)
    task = context.afforded(whole, _FORWARDS, _BUDGET, most=_EXAMPLES)

    def work() -> list[str]:
        table = context.run.read_table()
        if "roles" not in table.details or not role_sets(table):
            return ["No head has a role, so no job was taken away."]
        knockout(
            context.subject,
            task,
            table,
            run=context.run,
            batch_size=context.batch_size,
            seed=context.seed or 0,
            engine=context.engine,
        )
        return []

    settings = {**context.about_task(task), "draws": DRAWS, "convention": "headcount"}
    runs = ((evaluation_step(context, task), float(_FORWARDS * len(task))),)
    return StoryStage(name, title, settings, work, task, runs)


STAGE = StageMaker(knockout_stage, after="ablation")


# --- On the page ----------------------------------------------------------------------------------

#: The joint sets of a knock-out: their title, and how a sentence speaks of their heads.
_JOINT = {
    "any function": ("All that do something", "that do something we can name"),
    "any rest": ("All that look at one place", "that mostly look at one place"),
    "free alone": ("All that cost nothing alone", "that cost nothing alone"),
}


def job_part(source: Source) -> list[dict[str, Any]]:
    """A row for every set of heads that was switched off together: jobs first, then joint sets."""
    frame = source.frame("knockout")
    if frame is None:
        return []
    rows = []
    for row in frame.to_dict("records"):
        name = str(row["set"])
        look = KINDS.get(name)
        role = f"with the role {look.title.lower()}" if look else f"in the set {name}"
        title, that = _JOINT.get(name, (look.title if look else name, role))
        places = [source.places.get(head) for head in parse_heads(str(row["members"]))]
        visible = (row["added_high"] - row["added_low"]) / 2
        rows.append(
            {
                "set": name,
                "role": name if look else None,
                "title": title,
                "that": that,
                "heads": int(row["heads"]),
                "members": [place for place in places if place is not None],
                "metric": metric_title(str(row["metric"])),
                "n": int(row["examples"]),
                "draws": int(row["draws"]),
                "answer": str(row["answer"]),
                "note": str(row["note"] or ""),
                "visible": figure(visible),
                "added": figure(row["added"]),
                "lo": figure(row["added_low"]),
                "hi": figure(row["added_high"]),
                "control": figure(row["control"]),
                "least": figure(row["control_least"]),
                "most": figure(row["control_most"]),
                "alone": figure(row["alone"]),
            }
        )
    order = [*KINDS, *_JOINT]
    return sorted(rows, key=lambda row: order.index(row["set"]) if row["set"] in order else -1)


# --- The costliest heads, by what people judge the task by ----------------------------------------

#: Heads that are tried in a quick story, and the multiplications it may take.
_FEW, _OWN_BUDGET = 6, 3e11


def own_metric_stage(context: StoryContext) -> StoryStage:
    """The heads whose ablation costs most loss, tried by what people judge the task by."""
    whole = own_metric(context)
    if whole is None:
        title = "What the most important heads cost the task"
        why = context.why_no_task or "the task has no metric besides its loss"
        return StoryStage("own-metric", title, why_not=why)
    count = len(context.heads) if context.thorough else _FEW
    each = (7.0 if whole.generates else 1.0) * (count + 1)
    task = context.afforded(whole, each, _OWN_BUDGET)
    settings = {**context.about_task(task), "heads": count}

    def work() -> list[str]:
        table = context.run.read_table()
        worth = np.nan_to_num(table.numbers("ablation"), nan=-np.inf)
        heads = sorted(table.heads[row] for row in np.argsort(-worth, kind="stable")[:count])
        with context.journal("own-metric", "own metric", settings) as journal:
            found = importance.sweep(
                context.subject,
                task,
                [importance.Intervention([head]) for head in heads],
                metric="task",
                batch_size=context.batch_size,
                journal=journal,
                engine=context.engine,
                name="own metric",
            )
            context.keep(_own_metric_table(context, task, heads, found))
        tried = f"{len(heads)} of {len(context.heads)} heads"
        return [f"{tried}, those whose ablation costs most loss."]

    title = f"What the most important heads cost in {metric_title(task.metric.name)}"
    runs = ((evaluation_step(context, task), (count + 1.0) * len(task)),)
    return StoryStage("own-metric", title, settings, work, task, runs)


def _own_metric_table(
    context: StoryContext, task: Task, heads: list[Head], found: importance.Sweep
) -> HeadTable:
    """A column that is NA for the heads that were not tried."""
    costs = importance.ablation_costs(found)
    name, title = f"ablation_{task.metric.name}", metric_title(task.metric.name)
    rows = [context.heads.index(head) for head in heads]

    def spread(values: np.ndarray) -> np.ndarray:
        room = np.full(len(context.heads), np.nan)
        room[rows] = values
        return room

    about: dict[str, Any] = {"paper": "Michel et al. 2019, section 3.2", "group": importance.GROUP}
    columns = [
        Column(
            name,
            meaning=f"How much {title} falls without the head.",
            unit=title,
            more="more important",
            format="+.3g",
            diverging=True,
            **about,
        ),
        Column(
            f"{name}_p_adjusted",
            meaning=f"The p value of {name}, after Holm over the heads that were tried.",
            range=(0, 1),
            format=".2g",
            **about,
        ),
    ]
    settings = {"metric": task.metric.name, "baseline": found.baseline.value, "mode": "zero"}
    return HeadTable.of(
        context.heads,
        {name: spread(costs.value), f"{name}_p_adjusted": spread(costs.p_adjusted)},
        columns,
        low={name: spread(costs.low)},
        high={name: spread(costs.high)},
        notes={name: "; ".join(["only the heads whose ablation costs most loss", *costs.notes])},
        provenance=importance.origin(context.subject, task, settings=settings, remarks=found.notes),
    )


OWN_METRIC = StageMaker(own_metric_stage, after="knockout")
