"""How a gradient score is taken: whose convention, where the absolute value, which norm."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

from headcount.errors import UsageError
from headcount.importance.slopes import Per
from headcount.subject import Subject
from headcount.tasks.task import Task

__all__ = ["Normalize", "Way", "read_way"]

Normalize = Literal["layer", "none"]

#: What each convention says of `per` and `normalize`.
_DEFAULTS: dict[str, tuple[Per, Normalize]] = {
    "headcount": ("example", "none"),
    "paper": ("example", "layer"),
    "code": ("token", "none"),
}
#: The tasks that Michel et al. published programs for, and the kind of model of each.
_PROGRAMS = {"classification": "enc", "translation": "enc-dec"}


@dataclass(frozen=True)
class Way:
    """A gradient score's settings, checked."""

    per: Per
    normalize: Normalize
    convention: str
    #: Whether a batch's loss is its mean, as in Michel et al.'s program for classifiers.
    mean_loss: bool = False

    @property
    def code(self) -> bool:
        """Whether the authors' programs are followed."""
        return self.convention == "code"


def read_way(
    subject: Subject, task: Task, per: str | None, normalize: str | None, convention: str
) -> Way:
    """The settings, with the convention's own where nothing was said."""
    if convention not in _DEFAULTS:
        raise UsageError(f"There is no convention '{convention}'; choose headcount, paper or code.")
    usual_per, usual_norm = _DEFAULTS[convention]
    chosen: Any = per or usual_per
    norm: Any = normalize or usual_norm
    _check(chosen, "per", get_args(Per))
    _check(norm, "normalize", get_args(Normalize))
    if convention != "headcount" and chosen != usual_per:
        raise UsageError(
            f"per is '{chosen}', and the convention '{convention}' is per {usual_per}; leave per "
            "out, or use the convention headcount."
        )
    if convention == "code" and _PROGRAMS.get(task.kind) != subject.kind:
        raise UsageError(
            f"Michel et al. published no program for tasks of the kind {task.kind} on a model with "
            f"{subject.kind} heads; use the convention headcount or paper."
        )
    mean = convention == "code" and task.kind == "classification"
    return Way(chosen, norm, convention, mean)


def _check(value: str, name: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise UsageError(f"{name} is '{value}'; choose {', '.join(known[:-1])} or {known[-1]}.")
