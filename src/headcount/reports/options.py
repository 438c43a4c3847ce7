"""The options of a story and its page; nothing heavy is imported here."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

from headcount.errors import UsageError
from headcount.records import WorkOptions, option

#: How exact maps on a page are.
Fineness = Literal["fine", "coarse", "none"]

_page = partial(option, panel="The page")
_train = partial(option, panel="What is measured", key_of="training")


@dataclass(frozen=True)
class StoryOptions(WorkOptions):
    """What a story measures, and on how much.

    >>> StoryOptions(gates=True).steps("gates", 500), StoryOptions(gates=60).steps("gates", 500)
    (500, 60)
    """

    thorough: bool = option(
        False,
        None,
        "Take every example, the task's own metric for every head, and a random twin: hours "
        "rather than minutes.",
    )
    gates: bool | int = option(
        False,
        None,
        "Also learn gates on frozen weights, at four sizes of the model: how many heads they free.",
        reads=bool,
    )
    heal: bool | int = option(
        False,
        None,
        "Also train what is left at these sizes, with the whole model as its teacher: what it "
        "recovers.",
        reads=bool,
    )
    refit: bool = _train(
        False, None, "Also let what is left at these sizes make up for what went: seconds."
    )
    gate_steps: int | None = _train(None, "N", "Training steps of gates; 500 by default.", least=1)
    heal_steps: int | None = _train(
        None, "N", "Training steps of healing; 200 by default.", least=1
    )
    tolerance: str | float | None = _page(
        None,
        "LOSS",
        "The loss allowed when heads are pruned: points (0.5), percent (1%) or by metric "
        "(bleu=0.5,loss=1%); by default 1 point of accuracy, F1 and correlations, 0.5 BLEU or "
        "chrF, 1% of losses.",
        reads=str,
    )

    def __post_init__(self) -> None:
        """Refuse steps of what is not trained, and definitions that a story does not take."""
        for name, steps in (("gates", self.gate_steps), ("heal", self.heal_steps)):
            if steps is not None and not getattr(self, name):
                flag = f"{name.removesuffix('s')}-steps"
                raise UsageError(f"--{flag} means nothing without --{name}; leave it out.")
        if self.convention != "headcount":
            raise UsageError("A story uses headcount's own definitions; drop convention=.")

    def steps(self, name: str, usual: int) -> int:
        """Training steps of gates or healing; 0 if they are off."""
        asked: bool | int = getattr(self, name)
        given: int | None = getattr(self, f"{name.removesuffix('s')}_steps")
        return (given or usual) if asked is True else int(asked)


@dataclass(frozen=True)
class PageOptions:
    """What is in a page besides the figures of its run."""

    #: Whether a few sentences of the texts are in it.
    exhibits: bool = True
    maps: Fineness = _page(  # noqa: RUF009
        "fine",
        "HOW",
        "How exact maps in the page are: fine, coarse (smaller) or none.",
        choices=("fine", "coarse", "none"),
        key_of="page",
        reads=str,
    )
    #: A run, or its path.
    compare: Any = _page(  # noqa: RUF009
        None,
        "RUN",
        "A second run of the same architecture, to set next to the first.",
        reads=Path,
    )
