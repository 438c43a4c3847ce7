"""Exhibits among the stages of a story."""

from __future__ import annotations

from headcount.records import write_exhibits
from headcount.reports import StageMaker, StoryContext, StoryStage
from headcount.rooms.exhibits.choosing import exhibits_of

#: As many sentences are kept.
COUNT = 3


def exhibit_stage(context: StoryContext) -> StoryStage:
    """Sentences that show what the verdicts are about, with every head's map of them."""

    def work() -> list[str]:
        roles = context.run.read_frame("roles") if "roles" in context.run.frames else None
        found, notes = exhibits_of(
            context.subject,
            context.treebank or context.texts,
            roles=roles,
            count=COUNT,
            own_text=context.own_text,
            coref=context.coref,
        )
        write_exhibits(context.run, found)
        return notes

    settings = {**context.about_texts, "count": COUNT, "own_text": context.own_text}
    return StoryStage("exhibits", "A few sentences to look at", settings, work, keeps_text=True)


STAGE = StageMaker(exhibit_stage, after="survey")
