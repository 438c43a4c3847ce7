"""From text to tensors: vocabulary, every segmentation of the training pairs, dev."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from .config import Config, Phase
from .corpus import Corpus
from .pairs import Pair, Split, read_splits
from .pieces import Flat, encode, train_pieces

__all__ = ["Prepared", "pair_corpus", "prepare"]


@dataclass(frozen=True)
class Prepared:
    """What the loop reads: the training pairs once for every segmentation, one after another."""

    splits: Split
    folder: Path  # the tokenizer
    train: Corpus
    dev: Corpus
    direct: Tensor  # [pair], of one segmentation
    versions: int  # sampled segmentations after the plain one

    def chosen(self, phase: Phase, epoch: int) -> Tensor:
        """The pairs of an epoch: of one segmentation, all of them or the direct ones."""
        version = epoch % (self.versions + 1) if phase.sampled else 0
        pairs = torch.arange(len(self.direct))
        picked = pairs if phase.indirect else pairs[self.direct]
        return picked + version * len(pairs)


def prepare(config: Config, data: Path | None, out: Path) -> Prepared:
    """Read the corpus, train the vocabulary unless it is there, and cut every text."""
    splits = read_splits(config.data, data)
    folder = out / "tokenizer"
    if not (folder / "tokenizer_config.json").exists():
        texts = (text for pair in splits.train for text in (pair.source, pair.target))
        train_pieces(texts, config.pieces, folder, (config.data.source, config.data.target))
    versions = config.pieces.versions if config.pieces.dropout else 0
    return Prepared(
        splits=splits,
        folder=folder,
        train=_all_versions(splits.train, folder, config, versions),
        dev=pair_corpus(splits.dev, folder),
        direct=torch.tensor([pair.direct for pair in splits.train]),
        versions=versions,
    )


def pair_corpus(pairs: list[Pair], folder: Path) -> Corpus:
    """Pairs cut the one best way."""
    sides = ([pair.source for pair in pairs], [pair.target for pair in pairs])
    return Corpus.build(*(encode(side, folder) for side in sides))


def _all_versions(pairs: list[Pair], folder: Path, config: Config, versions: int) -> Corpus:
    sides = []
    for number, side in enumerate(("source", "target")):
        texts, settings = [getattr(pair, side) for pair in pairs], config.pieces
        plain = encode(texts, folder, processes=settings.processes)
        sampled = _sample(texts, folder, config, versions, config.train.seed + 7_000_000 * number)
        sides.append(_concatenate(plain, sampled))
    return Corpus.build(*sides)


def _sample(
    texts: list[str], folder: Path, config: Config, versions: int, seed: int
) -> Flat | None:
    """Every sampled segmentation in one call, so that all cores have work."""
    if not versions:
        return None
    settings = config.pieces
    return encode(texts * versions, folder, settings.dropout, seed, settings.processes)


def _concatenate(plain: Flat, sampled: Flat | None) -> Flat:
    if sampled is None:
        return plain
    return np.concatenate([plain[0], sampled[0]]), np.concatenate([plain[1], sampled[1]])
