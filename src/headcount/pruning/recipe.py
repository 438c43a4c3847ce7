"""A recipe: how long and how fast a model learns."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields
from typing import Any, TypedDict

from headcount.errors import UsageError

__all__ = ["Options", "Recipe", "recipe_of"]

DECAYS = ("linear", "cosine", "constant")
PRECISIONS = ("no", "bf16", "fp16")


class Options(TypedDict, total=False):
    """The fields of a `Recipe`, as `learn_gates` and `heal` take them by name."""

    steps: int
    lr: float
    batch_size: int
    warmup: int
    decay: str
    clip: float | None
    weight_decay: float
    seed: int
    mixed_precision: str
    log_every: int
    save_every: int


@dataclass(frozen=True)
class Recipe:
    """Steps of AdamW, and the learning rate at each.

    The rate rises in `warmup` steps to `lr` and falls to 0 at the end (`decay` "linear" or
    "cosine"), or stays ("constant").

    >>> [Recipe(steps=4, lr=1.0, warmup=2).rate(step) for step in range(4)]
    [0.5, 1.0, 1.0, 0.5]
    """

    steps: int
    lr: float = 5e-5
    #: Rows of a batch in each process.
    batch_size: int = 16
    warmup: int = 0
    decay: str = "linear"
    #: The longest gradient of the weights; None for any.
    clip: float | None = 1.0
    weight_decay: float = 0.0
    seed: int = 0
    #: "no", "bf16" or "fp16"; weights stay in float32.
    mixed_precision: str = "no"
    log_every: int = 10
    save_every: int = 100

    def __post_init__(self) -> None:
        """Refuse what cannot be."""
        for name in ("steps", "batch_size", "log_every", "save_every"):
            if getattr(self, name) < 1:
                raise UsageError(f"{name} is {getattr(self, name)}; it must be 1 or more.")
        for name in ("lr", "warmup", "weight_decay"):
            if getattr(self, name) < 0:
                raise UsageError(f"{name} is {getattr(self, name)}; it must be 0 or more.")
        _check_word("decay", self.decay, DECAYS)
        _check_word("mixed_precision", self.mixed_precision, PRECISIONS)

    def rate(self, step: int) -> float:
        """The learning rate of a step, counted from 0."""
        if step < self.warmup:
            return self.lr * (step + 1) / self.warmup
        done = (step - self.warmup) / max(1, self.steps - self.warmup)
        if self.decay == "linear":
            return self.lr * (1 - done)
        if self.decay == "cosine":
            return self.lr * (1 + math.cos(math.pi * done)) / 2
        return self.lr

    def describe(self) -> dict[str, Any]:
        """What the result depends on."""
        settings = asdict(self)
        return {n: v for n, v in settings.items() if n not in ("log_every", "save_every")}


def recipe_of(options: Options) -> Recipe:
    """The recipe of options given by name."""
    known = [field.name for field in fields(Recipe)]
    for name in options:
        if name not in known:
            raise UsageError(f"There is no option '{name}'; there are {', '.join(known)}.")
    return Recipe(**options)


def _check_word(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise UsageError(f"{name} is '{value}'; choose {', '.join(allowed[:-1])} or {allowed[-1]}.")
