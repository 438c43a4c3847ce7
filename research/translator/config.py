"""The recipe's settings, read from a TOML file."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

from research.settings import filled

__all__ = ["Config", "Data", "Model", "Phase", "Pieces", "Train", "read_config"]


@dataclass(frozen=True)
class Data:
    """Where the pairs are: files in the data folder, or a generated toy corpus."""

    source: str = "en"
    target: str = "de"
    train: str = ""
    dev: str = ""
    test: str = ""
    toy: int = 0  # this many made-up pairs instead of files, for the smoke test


@dataclass(frozen=True)
class Pieces:
    """The shared subword vocabulary, and how the training text is cut into it."""

    vocabulary: int = 8000  # with </s>, <unk> and <pad>
    dropout: float = 0.0  # BPE-dropout (Provilkov et al. 2020, section 3)
    versions: int = 0  # how many sampled segmentations of the corpus are made
    processes: int = 0  # 0: one a core


@dataclass(frozen=True)
class Model:
    """The shape of the MarianMTModel."""

    layers: int = 6
    heads: int = 8
    width: int = 256
    inner: int = 1024
    dropout: float = 0.1
    attention_dropout: float = 0.0
    activation_dropout: float = 0.0
    positions: int = 256


@dataclass(frozen=True)
class Phase:
    """Which training pairs are drawn until a share of all steps is done."""

    until: float
    indirect: bool = True  # also pairs linked only through a third language
    sampled: bool = True  # also sampled segmentations


@dataclass(frozen=True)
class Train:
    """The loop: batches, schedule, what is written when."""

    seed: int = 13
    rows: int = 256  # a batch is rows x length positions a side
    length: int = 96
    steps: int = 30000
    warmup: int = 3000
    peak: float = 1e-3
    floor: float = 0.0  # the learning rate at the last step
    smoothing: float = 0.1
    agreement: float = 0.0  # R-Drop's alpha (Liang et al. 2021, eq. 4); 0: one pass a batch
    ema: float = 0.999
    clip: float = 1.0
    compile: bool = False
    log_every: int = 100
    dev_every: int = 1000
    save_every: int = 5000
    patience: int = 0  # looks at dev without a better BLEU before stopping; 0: never stop early
    dev_sentences: int = 1000  # translated greedily at every look at dev
    snapshots: int = 10  # log-spaced by steps, scored by the dynamics command
    phases: tuple[Phase, ...] = (Phase(1.0),)


@dataclass(frozen=True)
class Config:
    """One training run."""

    name: str
    data: Data
    pieces: Pieces
    model: Model
    train: Train


def read_config(path: str | Path) -> Config:
    """Read a run's settings; a key that does not exist is an error, not a default."""
    with Path(path).open("rb") as file:
        table = tomllib.load(file)
    train = dict(table.pop("train", {}))
    phases = tuple(filled(Phase, row, path) for row in train.pop("phases", [{"until": 1.0}]))
    return Config(
        name=table.pop("name", Path(path).stem),
        data=filled(Data, table.pop("data", {}), path),
        pieces=filled(Pieces, table.pop("pieces", {}), path),
        model=filled(Model, table.pop("model", {}), path),
        train=filled(Train, {**train, "phases": phases}, path),
    )
