"""Vectors of words, frozen: from a file, or the model's own input embeddings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from headcount.subject import Subject

__all__ = ["OWN", "FileVectors", "OwnVectors", "WordVectors"]

#: The word that stands for the model's own embeddings.
OWN = "own"


class WordVectors(Protocol):
    """Words to rows of a table; row 0 is zero and stands for every word that has no vector."""

    name: str

    def row(self, form: str, pieces: Sequence[int]) -> int:
        """The row of a word, given its form and the ids of its pieces."""

    def table(self) -> Tensor:
        """``[row, width]`` of all words that were asked for."""


class FileVectors:
    """Vectors by the lower-cased form of a word, as Clark et al. look GloVe up.

    >>> vectors = FileVectors(["the", "cat"], np.ones((2, 3)), "mine")
    >>> vectors.row("The", []), vectors.row("dog", []), tuple(vectors.table().shape)
    (1, 0, (3, 3))
    """

    def __init__(self, words: Sequence[str], values: np.ndarray, name: str) -> None:
        self.name, self.words, self.values = name, list(words), values
        self._rows: dict[str, int] = {}
        for number, word in enumerate(self.words, start=1):
            self._rows.setdefault(word.lower(), number)  # files begin with the frequent ones

    def row(self, form: str, pieces: Sequence[int]) -> int:
        """The row of a word; 0 where the file does not have it."""
        return self._rows.get(form.lower(), 0)

    def table(self) -> Tensor:
        """All vectors behind a row of zeros."""
        values = torch.from_numpy(np.asarray(self.values, dtype=np.float32))
        return torch.cat([torch.zeros(1, values.shape[1]), values])


class OwnVectors:
    """The mean of the input embeddings of a word's pieces.

    They are divided by the root mean square of all embeddings, so that one size of step suits
    every model.
    """

    name = OWN

    def __init__(self, subject: Subject) -> None:
        weight = subject.inner.get_input_embeddings().weight.detach().float().cpu()
        self._weight = weight / weight.square().mean().sqrt()
        self._rows: dict[tuple[int, ...], int] = {}

    def row(self, form: str, pieces: Sequence[int]) -> int:
        """The row of these pieces, which is made where they are new."""
        key = tuple(pieces)
        return self._rows.setdefault(key, len(self._rows) + 1) if key else 0

    def table(self) -> Tensor:
        """Zeros, then a row for all pieces seen so far, in the order in which they came."""
        rows = [self._weight[list(key)].mean(0) for key in self._rows]
        return torch.stack([torch.zeros(self._weight.shape[1]), *rows])
