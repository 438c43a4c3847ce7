"""The settings of the experiment, read from a TOML file."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field, replace
from pathlib import Path

from headcount.errors import InputError
from research.settings import filled
from research.translator.config import Config as Recipe
from research.translator.config import Train, read_config

__all__ = ["Config", "Plan", "Schedule", "read_settings"]


@dataclass(frozen=True)
class Schedule:
    """How a run goes: gates learn until `gate_steps`, then the heads are fixed and it heals."""

    steps: int = 12000
    gate_steps: int = 3000
    price_from: int = 0  # the step from which an open gate has a price
    ramp: int = 2400  # steps from there until the number of open gates should be the target
    rows: int = 48  # a batch; more updates for the same texts than the recipe's 96
    warmup: int = 200
    peak: float = 6e-4
    ema: float = 0.998
    dropout: float = 0.0
    teacher: float = 0.7  # share of the loss that comes from the whole translator's predictions
    gate_rate: float = 0.03
    gate_start: float = 2.5  # all gates begin open: the converged model begins whole
    rate: float = 1.0  # how fast the price of an open gate moves
    stiffness: float = 20.0
    compile: bool = True  # on a GPU
    versions: int = 3  # sampled segmentations of the training text


@dataclass(frozen=True)
class Plan:
    """One run: which stacks have gates, how many heads stay, which weights learn."""

    name: str
    stacks: tuple[str, ...] = ()
    keep: int = 0  # heads left in the gated stacks; without stacks: no gates
    learn: str = "all"  # everything, or "enc": the encoder's layers, the rest is frozen
    seed: int = 0
    scratch: str = ""  # start from random weights: with the heads of this run, or with "all"


@dataclass(frozen=True)
class Config:
    """The whole experiment: the translator's own recipe, the schedule, the runs."""

    recipe: Recipe
    schedule: Schedule
    runs: tuple[Plan, ...] = field(default=())
    start: str = "translator"  # the trained translator: a name or a folder that hc.load takes

    @property
    def train(self) -> Train:
        """The recipe's loop with this experiment's schedule; one pass a batch."""
        made = self.schedule
        return replace(
            self.recipe.train,
            steps=made.steps,
            rows=made.rows,
            warmup=made.warmup,
            peak=made.peak,
            ema=made.ema,
            agreement=0.0,
            compile=made.compile,
        )


def read_settings(path: Path) -> Config:
    """Read the settings; a key that does not exist is an error."""
    with path.open("rb") as file:
        table = tomllib.load(file)
    recipe = read_config(path.parent / table["recipe"])
    runs = [
        filled(Plan, {**row, "stacks": tuple(row.get("stacks", ()))}, path) for row in table["runs"]
    ]
    for plan in runs:
        if plan.stacks and plan.scratch not in ("", "all"):
            raise InputError(
                f"{path}: run '{plan.name}' has gates and starts with the heads of "
                f"'{plan.scratch}'; with stacks, scratch is \"all\" or left out."
            )
    return Config(recipe, filled(Schedule, table.get("schedule", {}), path), tuple(runs))
