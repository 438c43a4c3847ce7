"""Sentence pairs: read from TSV, or made up for the smoke test."""

from __future__ import annotations

import lzma
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from headcount.errors import InputError

from .config import Data

__all__ = ["Pair", "Split", "make_toy", "read_pairs", "read_splits"]


@dataclass(frozen=True)
class Pair:
    """A source sentence and its translation; direct unless found through a third language."""

    source: str
    target: str
    direct: bool = True


@dataclass(frozen=True)
class Split:
    """The three parts of a corpus."""

    train: list[Pair]
    dev: list[Pair]
    test: list[Pair]


def read_splits(data: Data, folder: Path | None) -> Split:
    """The corpus a config names, or its toy."""
    if data.toy:
        pairs = make_toy(data.toy + 64, seed=13)
        return Split(pairs[64:], pairs[:32], pairs[32:64])
    if folder is None:
        raise InputError(f"{data.train} needs a folder: give --data DIR or set HEADCOUNT_DATA.")
    return Split(*(read_pairs(folder / name) for name in (data.train, data.dev, data.test)))


def read_pairs(path: Path) -> list[Pair]:
    """Read a TSV of pairs: source, target, and where there is a third column, D or I."""
    if not path.is_file():
        raise InputError(f"{path} is not there; give the folder of the corpora with --data DIR.")
    return [_pair(line, f"{path} line {number}") for number, line in enumerate(_lines(path), 1)]


def _lines(path: Path) -> Iterator[str]:
    opened = lzma.open if path.suffix == ".xz" else open
    with opened(path, "rt", encoding="utf8", newline="\n") as file:
        for line in file:
            yield line.rstrip("\r\n")


def _pair(line: str, where: str) -> Pair:
    cells = line.split("\t")
    if len(cells) not in (2, 3):
        raise InputError(
            f"{where} has {len(cells)} columns; a pair has source, target and perhaps D or I."
        )
    source, target = cells[0].strip(), cells[1].strip()
    if not source or not target:
        raise InputError(
            f"{where} has an empty {'target' if source else 'source'}; remove the line."
        )
    if len(cells) == 3 and cells[2] not in ("D", "I"):
        raise InputError(f"{where} has {cells[2]!r} in its third column; D and I are allowed.")
    return Pair(source, target, direct=cells[-1] != "I")


_SYLLABLES = ("ba", "ke", "li", "mo", "nu", "ra", "si", "to")


def make_toy(count: int, seed: int) -> list[Pair]:
    """Made-up sentences; the translation turns every word round and keeps the order.

    >>> pair = make_toy(1, seed=0)[0]
    >>> pair.source, pair.target
    ('nuto numo bamo bamo sito toto.', 'otun omun omab omab otis otot.')
    """
    draw = random.Random(seed)
    words = ["".join(draw.choices(_SYLLABLES, k=2)) for _ in range(40)]
    sentences = [draw.choices(words, k=draw.randint(2, 6)) for _ in range(count)]
    return [Pair(" ".join(s) + ".", " ".join(w[::-1] for w in s) + ".") for s in sentences]
