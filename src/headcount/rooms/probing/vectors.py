"""Vectors of words, frozen: from a file, or the model's own input embeddings."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from headcount.errors import InputError
from headcount.models import Subject
from headcount.text import TextFile, is_number, text_file

# --- Vectors of words, frozen -------------------------------------------------------------------

#: The word that stands for the model's own embeddings.
OWN = "own"


class WordVectors(Protocol):
    """Words to rows of a table; row 0 is zero and stands for every word that has no vector."""

    name: str

    def row(self, form: str, pieces: Sequence[int]) -> int:
        """The row of a word, given its form and the ids of its pieces."""

    def table(self) -> Tensor:
        """``[row, width]`` of all words in the table."""


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


# --- Read vectors of words: text as GloVe and word2vec write it, or .npz ------------------------

_LIKE = (
    "a word and its numbers on each line (GloVe, word2vec as text), or .npz with words and vectors"
)

#: Other kinds of space may stand within a word, or be one: GloVe and fastText have such.
_BETWEEN = re.compile(r"[ \t]+")


def read_vectors(path: str | Path) -> FileVectors:
    """Vectors from a file: text, maybe packed, or .npz.

    A line has a word and its numbers with spaces between; a first line of two numbers, as word2vec
    writes it, is passed over. An .npz has `words` (an array of words, or one text with a word a
    line) and `vectors` ``[word, width]``.
    """
    path = Path(path)
    file = text_file(path)
    words, values = _from_npz(path) if path.suffix == ".npz" else _from_text(file)
    if not len(words):
        raise InputError(f"{path} has no vector; give {_LIKE}.")
    if not np.isfinite(values).all():
        raise InputError(f"{path} has vectors that are not numbers; give {_LIKE}.")
    return FileVectors(words, values, path.name)


def _from_text(file: TextFile) -> tuple[list[str], np.ndarray]:
    words: list[str] = []
    rows: list[np.ndarray] = []
    first = 0
    for number, line in file.lines():
        fields = _BETWEEN.split(line.strip(" \t"))
        if fields == [""] or (number == 1 and len(fields) == 2 and all(map(str.isdigit, fields))):
            continue  # blank, or word2vec's header
        # Some words of GloVe have spaces in them: the word ends before the first number.
        size = 1 + next((at for at, text in enumerate(fields[1:]) if is_number(text)), len(fields))
        try:
            numbers = np.array(fields[size:], dtype=np.float32)
        except ValueError:
            numbers = np.zeros(0, dtype=np.float32)
        if not len(numbers):
            raise InputError(
                f"Line {number} of {file.name} is not a word with numbers: '{line[:40]}'; give "
                f"{_LIKE}."
            )
        first = first or number
        if rows and len(numbers) != len(rows[0]):
            raise InputError(
                f"{file.name} has {len(rows[0])} numbers on line {first} and {len(numbers)} on "
                f"line {number}; all vectors must have the same width."
            )
        words.append(" ".join(fields[:size]))
        rows.append(numbers)
    return words, np.stack(rows) if rows else np.zeros((0, 0))


def _from_npz(path: Path) -> tuple[list[str], np.ndarray]:
    try:
        with np.load(path, allow_pickle=False) as found:
            arrays = {name: np.asarray(found[name]) for name in found.files}
    except Exception as error:  # zipfile, zlib and numpy raise a dozen kinds for damaged bytes
        raise InputError(f"{path} cannot be read as .npz ({error}); give {_LIKE}.") from error
    if not {"words", "vectors"} <= arrays.keys():
        has = ", ".join(list(arrays)[:3]) or "nothing"
        more = f" and {len(arrays) - 3:,} more" if len(arrays) > 3 else ""
        raise InputError(f"{path} holds {has}{more}; it must hold words and vectors.")
    words, values = arrays["words"], arrays["vectors"]
    listed = str(words).split("\n") if words.ndim == 0 else [str(word) for word in words]
    if values.ndim != 2 or len(values) != len(listed):
        raise InputError(
            f"{path} has {len(listed)} words and vectors of the shape {values.shape}; it must have "
            "one vector of the same width for each word."
        )
    return listed, values
