"""The experiment's settings, read from a TOML file."""

from __future__ import annotations

import tomllib
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from research.settings import filled

__all__ = ["Classifiers", "Config", "Gating", "Groups", "Healing", "read_config"]


@dataclass(frozen=True)
class Classifiers:
    """Which classifiers, how many examples for what, and what they are judged on."""

    models: list[str]
    rank: int
    ablate: int
    learn: int
    step: int
    randoms: int
    batch: int
    margin: float
    widths: dict[str, int]
    held: dict[str, list[str]]


@dataclass(frozen=True)
class Gating:
    """Gates that learn, one set of them for every number of heads, weights left alone."""

    left: list[int]
    rows: int
    steps: int
    ramp: int
    rate: float
    start: float


@dataclass(frozen=True)
class Healing:
    """Training on without the heads: at which points, of which orders, and how."""

    left: list[int]
    orders: list[str]
    rows: int
    steps: int
    rate: float
    warmup: float
    teacher: float


@dataclass(frozen=True)
class Groups:
    """The language model whose groups of heads go, and its text."""

    model: str
    text: str
    held: float
    length: int
    rank: int
    left: list[int]
    randoms: int
    batch: int
    heal: Healing


@dataclass(frozen=True)
class Config:
    """Everything."""

    classifiers: Classifiers
    gates: Gating
    heal: Healing
    groups: Groups
    seed: int = 0
    toy: int = 0  # so many made-up rows instead of files, for the smoke test

    def told(self, *parts: str) -> dict[str, Any]:
        """Some of the settings as JSON has them."""
        everything = asdict(self)
        return {"seed": self.seed} | {part: everything[part] for part in parts}


def read_config(path: str | Path) -> Config:
    """Read the settings; a key that does not exist is an error, not a default."""
    table: dict[str, Any] = tomllib.loads(Path(path).read_text())
    groups = table.pop("groups")
    groups["heal"] = filled(Healing, groups["heal"], path)
    kinds: dict[str, type] = {"classifiers": Classifiers, "gates": Gating, "heal": Healing}
    parts = {name: filled(kind, table.pop(name), path) for name, kind in kinds.items()}
    return filled(Config, {**table, **parts, "groups": filled(Groups, groups, path)}, path)
