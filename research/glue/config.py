"""The recipe's settings, read from a TOML file."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field, replace
from pathlib import Path

from headcount.errors import UsageError
from research.settings import filled

__all__ = ["INITS", "Config", "Each", "Train", "choose", "read_config"]

#: The columns of Kovaleva et al. 2019, table 1: weights as pre-trained, all of them drawn at
#: random, or as pre-trained with the encoder left as it is and the classifier alone learning.
INITS = ("pretrained", "random", "frozen")


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
    init: str = "pretrained"  # or random, or frozen: what learning starts from, and what learns
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
    config: Config,
    tasks: list[str] | None,
    models: list[str] | None,
    seeds: int | None,
    init: str | None = None,
) -> Config:
    """The config with fewer tasks or models, another number of seeds, or another start.

    >>> choose(Config(("minilm",), ("rte", "cola")), ["cola"], None, 1).tasks
    ('cola',)
    """
    for task in tasks or ():
        if task not in config.tasks:
            raise UsageError(f"There is no task '{task}'; choose from {', '.join(config.tasks)}.")
    if init is not None and init not in INITS:
        raise UsageError(f"There is no start '{init}'; choose from {', '.join(INITS)}.")
    return replace(
        config,
        tasks=tuple(tasks or config.tasks),
        models=tuple(models or config.models),
        seeds=config.seeds if seeds is None else seeds,
        init=config.init if init is None else init,
    )
