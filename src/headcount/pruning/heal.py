"""Heal what is left: a pruned model trains on for a while, taught by the whole one.

Distillation is that of Hinton et al. 2015 at temperature 1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Unpack

import pandas as pd

from headcount.progress import Progress
from headcount.pruning.recipe import Options, recipe_of
from headcount.pruning.session import Lesson, Session
from headcount.pruning.trainable import Chosen
from headcount.pruning.training import Row
from headcount.subject import Subject

__all__ = ["Healed", "heal"]


@dataclass(frozen=True, repr=False)
class Healed:
    """A model that was trained on, and how it went."""

    subject: Subject
    #: One row for every few steps: step, loss, price (0), lr.
    log: pd.DataFrame

    def __repr__(self) -> str:
        return f"Healed({self.subject.name}: loss {self.log['loss'].iloc[-1]:.4g})"


def heal(
    small: Subject,
    task: Lesson,
    *,
    teacher: Subject | None = None,
    share: float = 0.7,
    smoothing: float = 0.0,
    train: Chosen = "all",
    in_place: bool = False,
    checkpoint: str | Path | None = None,
    accelerator: Any = None,
    log: Callable[[Row], None] | None = None,
    progress: Progress | None = None,
    **options: Unpack[Options],
) -> Healed:
    """Train a pruned model on a task, with a `share` of the loss from the unpruned `teacher`.

    `task` is what it learns from: never the part that the result is judged on (`task.split`
    makes two). `options` are those of a `Recipe`: steps, lr, batch_size, warmup, decay, clip,
    weight_decay, seed, mixed_precision. `train` says which weights learn, as in `learn_gates`.

    A copy is trained and `small` left alone, unless `in_place`. With `checkpoint`, a folder,
    training that was killed goes on there and ends with the same weights. A layer that lost all
    its heads stays without.
    """
    session = Session(
        kind="heal",
        task=task,
        recipe=recipe_of(options),
        train=train,
        teacher=teacher,
        share=share,
        smoothing=smoothing,
        in_place=in_place,
        checkpoint=checkpoint,
        accelerator=accelerator,
        log=log,
        progress=progress,
    )
    return Healed(*session(small))
