"""Contribution among the stages of a story."""

from __future__ import annotations

from headcount.reports import StageMaker, StoryContext, StoryStage, score_stage


def contribution_stage(context: StoryContext) -> StoryStage:
    """Which share of its predictions a head carries: a backward for each of some predictions."""
    title = "Which share of a prediction each head carries"
    return score_stage(context, "contribution", title, forwards=10, budget=1.75e11)


STAGE = StageMaker(contribution_stage, after="gradient")
