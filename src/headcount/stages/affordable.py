"""How many examples a quick story can afford: by arithmetic, so that resuming changes nothing."""

from __future__ import annotations

from headcount.subject import Subject
from headcount.tasks.task import Task
from headcount.tasks.texts import texts_of_task
from headcount.text import texts_of

__all__ = ["affordable", "forward_cost"]

#: Characters of a token, roughly.
_CHARACTERS = 4.0
#: Fewer examples tell nothing.
_LEAST = 16
#: So many examples tell how long they are.
_LOOK = 200


def affordable(task: Task, subject: Subject, forwards: float, budget: float) -> int:
    """So many examples that `forwards` runs of each stay within a budget of multiplications.

    At least 16, at most all.
    """
    each = forwards * forward_cost(task, subject)
    return min(len(task), max(_LEAST, int(budget / each)))


def forward_cost(task: Task, subject: Subject) -> float:
    """Multiplications of one forward of one example: weights times tokens, roughly."""
    texts = [text for item in texts_of_task(task)[:_LOOK] for text in texts_of(item)]
    characters = sum(map(len, texts)) / min(len(task), _LOOK)
    table = subject.inner.get_input_embeddings()
    looked_up = 0 if table is None else sum(weight.numel() for weight in table.parameters())
    weights = sum(weight.numel() for weight in subject.model.parameters()) - looked_up
    if "cross" in subject.anatomy.stacks:
        characters /= 2  # each half of the weights sees one of the two texts
    return max(1.0, weights * characters / _CHARACTERS)
