"""Whole jobs taken away among the stages of a story."""

from __future__ import annotations

from headcount.importance import sweep_task
from headcount.reports import StageMaker, StoryContext, StoryStage, evaluation_step
from headcount.rooms.knockout.whole_jobs import DRAWS, knockout, role_sets

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
