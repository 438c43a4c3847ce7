"""Tests of `text/lines.py`."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import re
from pathlib import Path

import pytest

from headcount.errors import InputError
from headcount.text.lines import TextFile, format_of, text_file


def lines(raw: bytes) -> list[tuple[int, str]]:
    return list(TextFile("corpus.txt", lambda: io.BytesIO(raw)).lines())


def refused(raw: bytes) -> str:
    with pytest.raises(InputError) as caught:
        lines(raw)
    return str(caught.value)


def test_line_ends_and_byte_order_mark_are_taken_off() -> None:
    assert lines(b"\xef\xbb\xbfone\r\ntwo\nthree") == [(1, "one"), (2, "two"), (3, "three")]


def test_only_line_feeds_end_a_line() -> None:
    raw = "a\u2028b\x0bc\x85d\re\n".encode()
    assert lines(raw) == [(1, "a\u2028b\x0bc\x85d\re")]


def test_text_is_not_normalised_and_keeps_its_spaces() -> None:
    decomposed = "  cafe\u0301 "
    assert lines(decomposed.encode()) == [(1, decomposed)]


def test_a_byte_order_mark_inside_is_a_character() -> None:
    assert lines("a\n\ufeffb".encode()) == [(1, "a"), (2, "\ufeffb")]


def test_wrong_encoding_names_byte_line_and_remedy() -> None:
    raw = "ferry\nFähre\n".encode("latin1")
    said = refused(raw)
    assert raw[7:8] == b"\xe4"
    assert said == (
        "corpus.txt is not UTF-8: byte 7 (line 2) is 0xE4; convert it, e.g. "
        "iconv -f latin1 -t utf-8 corpus.txt > utf8-corpus.txt."
    )


def test_the_byte_counts_the_mark_at_the_start() -> None:
    assert "byte 4 (line 1)" in refused(b"\xef\xbb\xbfx\xe4")


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf16_is_named(encoding: str) -> None:
    mark = "\ufeff".encode(encoding)
    said = refused(mark + "rain".encode(encoding))
    assert said.startswith("corpus.txt is UTF-16, not UTF-8")
    assert "iconv -f utf-16 -t utf-8" in said


def test_a_binary_file_is_refused() -> None:
    said = refused(b"fine\n\x00\x01\x02")
    assert said.startswith("corpus.txt looks like a binary file (zero byte in line 2)")
    assert ".txt, .tsv, .csv, .conllu" in said


@pytest.mark.parametrize(
    ("suffix", "pack"), [(".gz", gzip.compress), (".xz", lzma.compress), (".bz2", bz2.compress)]
)
def test_packed_files(suffix: str, pack: object, tmp_path: Path) -> None:
    path = tmp_path / f"c.txt{suffix}"
    path.write_bytes(pack(b"one\ntwo\n"))  # type: ignore[operator]
    file = text_file(path)
    assert list(file.lines()) == [(1, "one"), (2, "two")]
    assert list(file.lines()) == list(file.lines()), "a file can be read again"


@pytest.mark.parametrize("suffix", [".gz", ".xz", ".bz2"])
def test_a_file_that_is_not_packed_as_it_says(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"c.txt{suffix}"
    path.write_bytes(b"plain text, not packed at all\n")
    with pytest.raises(InputError, match=rf"c\.txt\{suffix} cannot be (unpacked|read)"):
        list(text_file(path).lines())


@pytest.mark.parametrize(("suffix", "pack"), [(".gz", gzip.compress), (".xz", lzma.compress)])
def test_a_packed_file_cut_off(suffix: str, pack: object, tmp_path: Path) -> None:
    path = tmp_path / f"c.txt{suffix}"
    path.write_bytes(pack(b"one line\n" * 5000)[:-20])  # type: ignore[operator]
    with pytest.raises(InputError, match="damaged, cut off, or not what its suffix says"):
        list(text_file(path).lines())


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    class Stdin:
        buffer = io.BytesIO(b"one\ntwo\n")

    monkeypatch.setattr("sys.stdin", Stdin)
    file = text_file("-")
    assert file.name == "standard input"
    assert list(file.lines()) == list(file.lines()) == [(1, "one"), (2, "two")]


def test_a_missing_file_names_its_neighbours(tmp_path: Path) -> None:
    (tmp_path / "news.tsv").touch()
    with pytest.raises(InputError, match=re.escape("news.tvs; near it are news.tsv.")):
        text_file(tmp_path / "news.tvs")


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    with pytest.raises(InputError, match=re.escape(f"and no folder {gone}.")):
        text_file(gone / "news.tsv")


def test_a_text_in_place_of_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=r"pass it in a list: \[text\]"):
        text_file("Rain fell on the roof.")


def test_a_folder_shows_a_file_in_it(tmp_path: Path) -> None:
    (tmp_path / "b.conllu.xz").touch()
    (tmp_path / "a.pdf").touch()
    with pytest.raises(InputError) as caught:
        text_file(tmp_path)
    example = tmp_path / "b.conllu.xz"
    assert str(caught.value) == f"{tmp_path} is a folder; give one file, e.g. {example}."


def test_a_folder_without_a_corpus(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"is a folder; give one file \(\.txt, \.tsv"):
        text_file(tmp_path)


def test_a_file_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "c.txt"
    path.write_text("one")
    file = text_file(path)

    def forbidden(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", forbidden)
    with pytest.raises(InputError, match=r"c\.txt cannot be read: Permission denied\."):
        list(file.lines())


@pytest.mark.parametrize(
    ("name", "asked", "found"),
    [
        ("a.txt", None, "txt"),
        ("a.TSV", None, "tsv"),
        ("a.b.conllu.xz", None, "conllu"),
        ("a.conll.gz", None, "conll"),
        ("a.csv", None, "csv"),
        ("a.jsonl.bz2", None, "jsonl"),
        ("a.tsv", "gap", "gap"),
        ("-", None, "txt"),
        ("-", "tsv", "tsv"),
        ("a.dat", "conllu", "conllu"),
    ],
)
def test_formats(name: str, asked: str | None, found: str) -> None:
    assert format_of(name, asked) == found


def test_an_unknown_suffix_lists_the_known_ones() -> None:
    with pytest.raises(InputError) as caught:
        format_of("a.json.gz")
    assert str(caught.value) == (
        "a.json.gz has the suffix '.json', which says nothing of its format; known are .txt, "
        ".tsv, .csv, .conllu, .conll, .jsonl, .ndjson, .parquet, .arrow, each also packed as .gz, "
        ".xz, .bz2, .zst, or say which it is with --input format= (format=)."
    )


def test_an_unknown_format_lists_the_known_ones() -> None:
    with pytest.raises(
        InputError,
        match="'xml' is not a corpus format; choose one of arrow, conll, conllu, coref, csv, gap, "
        "jsonl, parquet, predicates, tsv, txt",
    ):
        format_of("a.csv", "xml")
