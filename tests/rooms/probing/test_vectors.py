"""Vectors of words from files, and from files that are none."""

from __future__ import annotations

import lzma
import zipfile
from pathlib import Path

import numpy as np
import pytest

from headcount.errors import InputError, RunError
from headcount.records.parquet import read_npz
from headcount.rooms.probing.data import read_vectors


def test_text_as_glove_and_word2vec_write_it(tmp_path: Path) -> None:
    (tmp_path / "glove.txt").write_text("the 1 2\nCat 3 4\n. . 5 6\n")
    (tmp_path / "w2v.txt").write_text("3 2\nthe 1 2\nCat 3 4\n. . 5 6\n")
    with lzma.open(tmp_path / "packed.txt.xz", "wt") as file:
        file.write("the 1 2\nCat 3 4\n. . 5 6\n")
    for name in ("glove.txt", "w2v.txt", "packed.txt.xz"):
        found = read_vectors(tmp_path / name)
        assert found.words == ["the", "Cat", ". ."]
        assert found.table().tolist() == [[0, 0], [1, 2], [3, 4], [5, 6]]
        assert [found.row(word, []) for word in ("THE", "cat", "dog")] == [1, 2, 0]


def test_words_may_hold_other_spaces_and_vectors_be_one_number_wide(tmp_path: Path) -> None:
    """fastText has "10 000" and GloVe a no-break space for a word; only a space or tab divides."""
    (tmp_path / "v.txt").write_text("10\u00a0000 1 2\n\u00a0 3 4\ncat\t5\t6 \n")
    assert read_vectors(tmp_path / "v.txt").words == ["10\u00a0000", "\u00a0", "cat"]
    (tmp_path / "thin.txt").write_text("the 0.5\ncat 2\n")
    assert read_vectors(tmp_path / "thin.txt").table().flatten().tolist() == [0, 0.5, 2]


@pytest.mark.parametrize("words", [np.array(["a", "b"]), np.array("a\nb")])
def test_npz(words: np.ndarray, tmp_path: Path) -> None:
    np.savez(tmp_path / "v.npz", words=words, vectors=np.eye(2, dtype=np.float16))
    found = read_vectors(tmp_path / "v.npz")
    assert found.words == ["a", "b"]
    assert found.table().tolist() == [[0, 0], [1, 0], [0, 1]]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("the 1 2\ncat 3 4 5\n", "2 numbers on line 1 and 3 on line 2; all vectors must have the"),
        ("the 1 2\ncat 3 x\n", "Line 2 of .* is not a word with numbers: 'cat 3 x'"),
        ("the cat sat\n", "Line 1 of .* is not a word with numbers"),
        ("", "has no vector"),
        ("the 1 nan\n", "vectors that are not numbers"),
    ],
)
def test_text_that_cannot_be_read(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "v.txt").write_text(text)
    with pytest.raises(InputError, match=said):
        read_vectors(tmp_path / "v.txt")


def test_a_member_that_is_no_array_is_refused(tmp_path: Path) -> None:
    """NumPy gives its bytes."""
    path = tmp_path / "v.npz"
    with zipfile.ZipFile(path, "w") as packed:
        for name in ("words.npy", "vectors.npy"):
            packed.writestr(name, b"nothing of the kind")
    with pytest.raises(InputError, match=r"v\.npz has 1 words and vectors of the shape \(\)"):
        read_vectors(path)
    with pytest.raises(RunError, match=r"v\.npz cannot be read: it is cut off or damaged"):
        read_npz(path)


def test_npz_that_cannot_be_read(tmp_path: Path) -> None:
    path = tmp_path / "v.npz"
    path.write_text("no")
    with pytest.raises(InputError, match=r"cannot be read as \.npz"):
        read_vectors(path)
    np.savez(path, words=np.array(["a"]))
    with pytest.raises(InputError, match="holds words; it must hold words and vectors"):
        read_vectors(path)
    np.savez(path, **{word: np.zeros(3) for word in "abcdef"})
    with pytest.raises(InputError, match="holds a, b, c and 3 more; it must hold words"):
        read_vectors(path)
    np.savez(path, words=np.array(["a"]), vectors=np.zeros((2, 3)))
    with pytest.raises(InputError, match="1 words and vectors of the shape"):
        read_vectors(path)
    with pytest.raises(InputError, match="There is no file"):
        read_vectors(tmp_path / "none.txt")
