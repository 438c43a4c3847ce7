"""How fast this machine runs this model: a few texts, timed."""

from __future__ import annotations

from time import monotonic

from headcount.stages.passing import Manner, passed
from headcount.stages.scene import Scene

__all__ = ["seconds_a_text"]

#: So many texts are run, after as many to warm up.
_TEXTS = 8


def seconds_a_text(scene: Scene) -> float:
    """What one forward of one text takes, among others in a batch."""
    texts = scene.texts.limit(_TEXTS, scene.seed or 0)
    manner = Manner(scene.subject.anatomy.stacks, scene.batch_size)
    passed(scene.subject, texts, [], manner)
    begun = monotonic()
    passed(scene.subject, texts, [], manner)
    return (monotonic() - begun) / len(texts)
