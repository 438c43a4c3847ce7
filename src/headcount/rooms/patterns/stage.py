"""Patterns among the stages of a story."""

from __future__ import annotations

from headcount.reports import StageMaker, StoryContext, StoryStage, forward_steps
from headcount.rooms.patterns.network import PATTERN_COLUMNS

#: Texts that settle a head's shares of patterns.
_TEXTS = 96


def patterns_stage(context: StoryContext) -> StoryStage:
    """Each head's shares of the five patterns among its maps."""
    texts = context.some_texts(_TEXTS)

    def work() -> list[str]:
        names = [column.name for column in PATTERN_COLUMNS]
        context.keep_survey("patterns", texts, columns=names, roles=False)
        return []

    settings = {"texts": texts.hash, "seed": context.seed, "convention": "headcount"}
    title = "What its maps look like"
    return StoryStage(
        "patterns", title, settings, work, runs=forward_steps(context, 10.0 * len(texts))
    )


STAGE = StageMaker(patterns_stage, after="families")
