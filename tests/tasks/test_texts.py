"""The texts that a task has a model read."""

from __future__ import annotations

import pytest
from tiny_subjects import classifier, translator

from headcount import tasks
from headcount.errors import UsageError
from headcount.importance.score import stacks_read, texts_of_task
from headcount.text.sentence import texts_of

ALIKE = tasks.similarity([("A dog.", "A hound.", 4.5), ("A dog.", "A tax.", 0.5)], prefix="query: ")


@pytest.mark.parametrize(
    ("task", "texts"),
    [
        (tasks.translation([("Rain.", "Regen.")]), [("Rain.", "Regen.")]),
        (tasks.classification([("A fine film.", 1)]), [("A fine film.",)]),
        (tasks.regression([("A dog.", "A hound.", 4.5)]), [("A dog.", "A hound.")]),
        (tasks.lm(["Rain fell."]), [("Rain fell.",)]),
        (
            ALIKE,
            [("query: A dog.",), ("query: A hound.",), ("query: A dog.",), ("query: A tax.",)],
        ),
    ],
)
def test_texts_by_kind(task: tasks.Task, texts: list[tuple[str, ...]]) -> None:
    assert [texts_of(item) for item in texts_of_task(task)] == texts


def test_examples_without_texts_are_refused() -> None:
    own = tasks.custom([1, 2], lambda subject, numbers: numbers)
    with pytest.raises(UsageError, match="examples of the type int and no texts to look at"):
        texts_of_task(own)


def test_an_encoder_decoder_that_only_reads_has_one_stack_to_look_at() -> None:
    pairs = tasks.translation([("Rain.", "Regen.")])
    assert stacks_read(ALIKE, translator()) == ("enc",)
    assert stacks_read(pairs, translator()) == ("enc", "dec", "cross")
    assert stacks_read(ALIKE, classifier()) == ("enc",)
