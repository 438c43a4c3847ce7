"""Read vectors of words: text as GloVe and word2vec write it, or .npz."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from headcount.errors import InputError
from headcount.probes.vectors import FileVectors
from headcount.text.lines import TextFile, text_file

__all__ = ["read_vectors"]

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
    for number, word, numbers in _lines(file):
        first = first or number
        if rows and len(numbers) != len(rows[0]):
            raise InputError(
                f"{file.name} has {len(rows[0])} numbers on line {first} and {len(numbers)} on "
                f"line {number}; all vectors must have the same width."
            )
        words.append(word)
        rows.append(numbers)
    return words, np.stack(rows) if rows else np.zeros((0, 0))


def _lines(file: TextFile) -> Iterator[tuple[int, str, np.ndarray]]:
    """Line numbers, words and their numbers."""
    for number, line in file.lines():
        fields = _BETWEEN.split(line.strip(" \t"))
        if fields == [""] or (number == 1 and len(fields) == 2 and all(map(str.isdigit, fields))):
            continue  # blank, or word2vec's header
        size = 1 + next((at for at, text in enumerate(fields[1:]) if _is_number(text)), len(fields))
        yield number, " ".join(fields[:size]), _numbers(file, number, fields[size:], line)


def _is_number(text: str) -> bool:
    """Whether the word is over: some of GloVe's have spaces in them."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def _numbers(file: TextFile, number: int, fields: list[str], line: str) -> np.ndarray:
    try:
        found = np.array(fields, dtype=np.float32)
    except ValueError:
        found = np.zeros(0, dtype=np.float32)
    if not len(found):
        raise InputError(
            f"Line {number} of {file.name} is not a word with numbers: '{line[:40]}'; give {_LIKE}."
        )
    return found


def _from_npz(path: Path) -> tuple[list[str], np.ndarray]:
    try:
        with np.load(path, allow_pickle=False) as found:
            arrays = {name: found[name] for name in found.files}
    except (OSError, ValueError, zipfile.BadZipFile) as error:
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
