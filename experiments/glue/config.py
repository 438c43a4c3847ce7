"""The recipe's settings, read from a TOML file."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field, replace
from pathlib import Path

from experiments.settings import filled
from headcount.errors import UsageError

__all__ = ["Config", "Each", "Train", "choose", "read_config"]


@dataclass(frozen=True)
class Train:
    """What holds for every task: batches, the shape of the schedule, the optimiser."""

    batch: int = 32
    widths: tuple[int, ...] = (16, 32, 48, 64, 96, 128)
    warmup: float = 0.1  # share of all steps over which the rate rises
    decay: float = 0.01
    clip: float = 1.0


@dataclass(frozen=True)
class Each:
    """What a task may set for itself."""

    epochs: int = 5
    rate: float = 1e-4


@dataclass(frozen=True)
class Config:
    """Which models on which tasks, how often, and how."""

    models: tuple[str, ...]
    tasks: tuple[str, ...]
    seeds: int = 3
    toy: int = 0  # this many made-up rows a task instead of files, for the smoke test
    train: Train = field(default_factory=Train)
    each: dict[str, Each] = field(default_factory=dict)


def read_config(path: str | Path) -> Config:
    """Read the settings; a key that does not exist is an error, not a default."""
    with Path(path).open("rb") as file:
        table = tomllib.load(file)
    common = dict(table.pop("each", {}))
    own = {key: common.pop(key) for key in list(common) if isinstance(common[key], dict)}
    train = dict(table.pop("train", {}))
    if "widths" in train:
        train["widths"] = tuple(sorted(train["widths"]))
    tasks = tuple(table.pop("tasks"))
    return filled(
        Config,
        {
            **table,
            "models": tuple(table.pop("models")),
            "tasks": tasks,
            "train": filled(Train, train, path),
            "each": {task: filled(Each, {**common, **own.get(task, {})}, path) for task in tasks},
        },
        path,
    )


def choose(
    config: Config, tasks: list[str] | None, models: list[str] | None, seeds: int | None
) -> Config:
    """The config with fewer tasks or models, or another number of seeds.

    >>> choose(Config(("minilm",), ("rte", "cola")), ["cola"], None, 1).tasks
    ('cola',)
    """
    for task in tasks or ():
        if task not in config.tasks:
            raise UsageError(f"There is no task '{task}'; choose from {', '.join(config.tasks)}.")
    return replace(
        config,
        tasks=tuple(tasks or config.tasks),
        models=tuple(models or config.models),
        seeds=config.seeds if seeds is None else seeds,
    )
