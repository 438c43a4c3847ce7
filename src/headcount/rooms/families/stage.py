"""Families among the stages of a story."""

from __future__ import annotations

from headcount.reports import StageMaker, StoryContext, StoryStage, forward_steps
from headcount.rooms.families.grouping import families

#: Texts that settle which heads are alike.
_TEXTS = 96


def families_stage(context: StoryContext) -> StoryStage:
    """Divergences between all heads of a stack, a map of them, clusters and nearest heads."""
    texts = context.some_texts(_TEXTS)

    def work() -> list[str]:
        found = families(
            context.subject, texts, batch_size=min(8, context.batch_size), seed=context.seed
        )
        context.run.write_arrays("pairs", found.arrays())
        return []

    settings = {"texts": texts.hash, "seed": context.seed, "convention": "headcount"}
    title = "Which heads are alike"
    return StoryStage(
        "families", title, settings, work, runs=forward_steps(context, 4.0 * len(texts))
    )


STAGE = StageMaker(families_stage, after="exhibits")
