"""Which word needs which head, among the stages of a story."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pandas as pd

from headcount.errors import HeadcountError
from headcount.reports import StageMaker, StoryContext, StoryStage
from headcount.rooms.lesions.word_by_head import Lesions, lesions
from headcount.text import texts_of

#: As many sentences, of so many words.
COUNT, _SHORT, _LONG = 3, 8, 14


def lesion_frame(found: Sequence[Lesions]) -> pd.DataFrame:
    """A row for each sentence, head and word: `lesions.parquet`, which the page draws."""
    return pd.DataFrame(
        {
            "sentence": number,
            "source": one.source,
            "target": one.target or "",
            **head._asdict(),
            "place": place,
            "word": word,
            "whole": one.whole[place],
            "added": one.added[row, place],
        }
        for number, one in enumerate(found)
        for row, head in enumerate(one.heads)
        for place, word in enumerate(one.words)
    ).rename(columns={"index": "head"})


def _sentences(context: StoryContext) -> Iterator[str]:
    """The first sentences of a length that a picture holds; else the first there are."""
    texts = [texts_of(item)[0] for item in context.texts]
    fitting = [text for text in texts if _SHORT <= len(text.split()) <= _LONG]
    yield from (fitting or texts)[:COUNT]


def lesions_stage(context: StoryContext) -> StoryStage:
    """How much less likely each output word of a few sentences becomes without each head."""

    def work() -> list[str]:
        try:
            found = [lesions(context.subject, text) for text in _sentences(context)]
        except HeadcountError as error:  # a model without words to predict, or without words at all
            return [str(error)]
        if found:
            context.run.write_frame("lesions", lesion_frame(found))
        return []

    settings = {**context.about_texts, "count": COUNT}
    title = "Which word needs which head"
    return StoryStage("lesions", title, settings, work, keeps_text=True)


STAGE = StageMaker(lesions_stage, after="exhibits")
