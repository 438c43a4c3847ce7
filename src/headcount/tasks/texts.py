"""The texts of a task as a corpus, for what looks at attention and not at answers."""

from __future__ import annotations

from headcount.errors import UsageError
from headcount.subject import Subject
from headcount.tasks.example import Labelled
from headcount.tasks.similarity import Similarity
from headcount.tasks.task import Task
from headcount.text.sentence import Item, Pair, Sentence

__all__ = ["stacks_read", "texts_of_task"]


def texts_of_task(task: Task) -> list[Item]:
    """What a task has a model read, as sentences or pairs.

    >>> from headcount.tasks import translation
    >>> texts_of_task(translation([("Rain fell.", "Regen fiel.")]))[0].target
    'Regen fiel.'
    """
    if isinstance(task, Similarity):
        return [
            Sentence(task.prefix + text)
            for example in task.examples
            for text in (example.text, example.second)
        ]
    return [_item(example, task) for example in task.examples]


def stacks_read(task: Task, subject: Subject) -> tuple[str, ...]:
    """The stacks whose tokens a task knows: of an encoder-decoder that only reads, the encoder."""
    if subject.kind == "enc-dec" and task.kind != "translation":
        return ("enc",)
    return subject.anatomy.stacks


def _item(example: object, task: Task) -> Item:
    if isinstance(example, Pair | Sentence):
        return example
    if isinstance(example, Labelled):
        if example.second is None:
            return Sentence(example.text)
        return Pair(example.text, example.second)
    raise UsageError(
        f"A {task.kind} task has examples of the type {type(example).__name__} and no texts to "
        "look at; survey the model on texts and pass that table."
    )
