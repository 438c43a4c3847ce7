"""A text file as numbered lines: found, unpacked, decoded, or refused in one sentence.

A corpus or a table may be packed with gzip, xz, bzip2 or Zstandard, or come from standard input; a
line may hold a JSON object.
"""

from __future__ import annotations

import bz2
import csv
import difflib
import gzip
import io
import json
import lzma
import os
import shutil
import sys
import tempfile
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

from headcount import plugins
from headcount.errors import Fault, InputError

#: What a corpus file can be, by suffix.
FORMATS = {
    ".txt": "txt",
    ".tsv": "tsv",
    ".csv": "csv",
    ".conllu": "conllu",
    ".conll": "conll",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".arrow": "arrow",
}
#: Those that are no lines of text.
BINARY = ("parquet", "arrow")
#: What a table of examples can be.
TABLES = (".tsv", ".txt", ".csv", ".jsonl", ".ndjson")


def _open_zstd(path: Path, mode: str) -> IO[bytes]:
    import pyarrow as pa

    # io.BufferedReader asks of its stream no more than Arrow's have.
    return io.BufferedReader(pa.CompressedInputStream(pa.OSFile(str(path)), "zstd"))


#: How a file can be packed, by a second suffix.
PACKINGS: dict[str, Callable[..., IO[bytes]]] = {
    ".gz": cast("Callable[..., IO[bytes]]", gzip.open),
    ".xz": cast("Callable[..., IO[bytes]]", lzma.open),
    ".bz2": cast("Callable[..., IO[bytes]]", bz2.open),
    ".zst": _open_zstd,
}
_UNPACKING = (lzma.LZMAError, zlib.error, EOFError, gzip.BadGzipFile)
#: Bytes of a line: a document of a coreference corpus has some hundred thousand.
_LONGEST = 16 << 20
_BOM = b"\xef\xbb\xbf"
_UTF16 = (b"\xff\xfe", b"\xfe\xff")

#: A line's number from 1, and its text or its cells.
Line = tuple[int, str]
Cells = tuple[int, list[str]]


@dataclass(frozen=True)
class TextFile:
    """A named source of bytes that can be read more than once."""

    name: str
    open: Callable[[], IO[bytes]]

    def lines(self) -> Iterator[Line]:
        """Every line with its number from 1, without line end and byte-order mark.

        >>> list(TextFile("x", lambda: io.BytesIO(b"one\\r\\ntwo")).lines())
        [(1, 'one'), (2, 'two')]
        """
        offset = 0
        with self.stream() as stream:
            rows = iter(lambda: stream.readline(_LONGEST + 1), b"")
            for number, raw in enumerate(rows, start=1):
                yield number, self._decode(raw, number, offset)
                offset += len(raw)

    @contextmanager
    def stream(self) -> Iterator[IO[bytes]]:
        """Its bytes; where they cannot be read or unpacked, a sentence says so."""
        try:
            with self.open() as stream:
                yield stream
        except _UNPACKING as error:
            raise InputError(
                f"{self.name} cannot be unpacked ({error}): it is damaged, cut off, or not what "
                "its suffix says; fetch it again or unpack it by hand."
            ) from error
        except OSError as error:
            raise InputError(f"{self.name} cannot be read: {error.strerror or error}.") from error

    def filled(self, skipped: Counter[str]) -> Iterator[Line]:
        """The lines that are not blank; blank ones are counted."""
        for number, line in self.lines():
            if line.strip():
                yield number, line
            else:
                skipped["blank lines"] += 1

    def _decode(self, raw: bytes, number: int, offset: int) -> str:
        if len(raw) > _LONGEST:
            raise InputError(
                f"{self.name} has a line {number} of more than {_LONGEST >> 20} MiB; it is not "
                "text in lines, or its line ends are lost."
            )
        if number == 1 and raw.startswith(_UTF16):
            raise InputError(
                f"{self.name} is UTF-16, not UTF-8: its first bytes (byte 0, line 1) say so; "
                f"convert it: iconv -f utf-16 -t utf-8 {self.name} > utf8-{Path(self.name).name}."
            )
        line = raw.removeprefix(_BOM) if number == 1 else raw
        if b"\0" in line:
            raise InputError(
                f"{self.name} looks like a binary file (zero byte in line {number}); give a text "
                f"file: {_listed(FORMATS)}."
            )
        try:
            text = line.decode("utf-8")
        except UnicodeDecodeError as error:
            where = offset + len(raw) - len(line) + error.start
            raise InputError(
                f"{self.name} is not UTF-8: byte {where} (line {number}) is "
                f"0x{line[error.start]:02X}; convert it, e.g. "
                f"iconv -f latin1 -t utf-8 {self.name} > utf8-{Path(self.name).name}."
            ) from error
        return text.removesuffix("\n").removesuffix("\r")


def is_saved_dataset(path: str | Path) -> bool:
    """Whether a folder was written by `save_to_disk` of Hugging Face's datasets."""
    return os.path.isfile(Path(path, "dataset_info.json"))  # noqa: PTH113 - False for any bad name


def text_file(source: str | Path) -> TextFile:
    """The file at a path, or standard input for ``-``."""
    if str(source) == "-":
        kept = tempfile.NamedTemporaryFile()  # noqa: SIM115 - on the disk, to be read again
        shutil.copyfileobj(sys.stdin.buffer, kept)
        kept.flush()
        return TextFile("standard input", lambda: Path(kept.name).open("rb"))
    path = Path(source)
    try:
        is_folder = path.is_dir()
    except OSError as error:  # a name that no file can have
        raise InputError(f"There is no file {str(path)[:120]}…: {error.strerror}.") from error
    if is_folder:
        readable = [one.name for one in path.iterdir() if inner_suffix(one) in FORMATS]
        hint = f", e.g. {path / min(readable)}" if readable else f" ({_listed(FORMATS)})"
        raise InputError(f"{path} is a folder; give one file{hint}.")
    if not path.exists():
        raise InputError(f"There is no file {path}{_nearest(path)}.")
    opener = PACKINGS.get(path.suffix.lower())
    return TextFile(str(path), lambda: opener(path, "rb") if opener else path.open("rb"))


def suffix_of(path: str | Path, known: Collection[str] = TABLES, hint: str = "") -> str:
    """What a file's name says of its format, whether it is packed or not.

    >>> suffix_of("dev.tsv.xz")
    '.tsv'
    """
    suffix = inner_suffix(Path(path))
    if suffix not in known:
        raise InputError(
            f"{path} has the suffix '{suffix}', which says nothing of its format; known are "
            f"{_listed(known)}{hint}."
        )
    return suffix


def inner_suffix(path: Path) -> str:
    """What stands before the suffix of a packing, or the suffix itself, in small letters."""
    inner = path.with_suffix("") if path.suffix.lower() in PACKINGS else path
    return inner.suffix.lower()


def format_of(source: str | Path, asked: str | None = None) -> str:
    """The format of a corpus file: the given one, else by its suffix.

    >>> format_of("news.tsv.xz")
    'tsv'
    """
    names = sorted({*FORMATS.values(), *plugins.names_of("formats")})
    if asked is not None and asked not in names:
        raise InputError(f"'{asked}' is not a corpus format; choose one of {', '.join(names)}.")
    if asked is None and str(source) == "-":
        return "txt"
    hint = ", or say which it is with --input format= (format=)"
    return asked or FORMATS[suffix_of(source, FORMATS, hint)]


def _listed(suffixes: Collection[str]) -> str:
    return f"{', '.join(suffixes)}, each also packed as {', '.join(PACKINGS)}"


def _nearest(path: Path) -> str:
    """What the user may have meant: a near name, or a text where a file was expected."""
    if not path.parent.is_dir():
        return f" and no folder {path.parent}"
    names = [entry.name for entry in path.parent.iterdir()]
    near = difflib.get_close_matches(path.name, names, n=3, cutoff=0.6)
    if near:
        return f"; near it are {', '.join(near)}"
    if " " in path.name:
        return "; to use a text itself, pass it in a list: [text]"
    return f" in {path.parent.resolve().name or path.parent}"


# --- What a line holds --------------------------------------------------------------------------


def cells_of(file: TextFile, skipped: Counter[str], *, commas: bool = False) -> Iterator[Cells]:
    """The cells of every row that is not blank; between commas one may hold line ends.

    >>> import io
    >>> list(cells_of(TextFile("x.tsv", lambda: io.BytesIO(b'a\\tb "c"')), Counter()))
    [(1, ['a', 'b "c"'])]
    """
    tabs = ((number, line.split("\t")) for number, line in file.lines())
    for number, cells in _comma_cells(file) if commas else tabs:
        if any(cell.strip() for cell in cells):
            yield number, cells
        else:
            skipped["blank lines"] += 1


def _comma_cells(file: TextFile) -> Iterator[Cells]:
    reader = csv.reader((line + "\n" for _, line in file.lines()), strict=True)
    last = 0
    try:
        for cells in reader:
            number, last = last + 1, reader.line_num
            yield number, cells
    except csv.Error as error:
        raise InputError(f"{file.name}, line {last + 1} is not proper CSV: {error}.") from error


def whole_number(text: str) -> int | None:
    """A number of 0 or more, as words and characters are counted; None for anything else.

    >>> whole_number("12"), whole_number("x"), whole_number("9" * 5000)
    (12, None, None)
    """
    return int(text) if text.isdecimal() and len(text) < 19 else None


def json_value(text: str, where: str) -> Any:
    """What a line of JSON holds."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        why = f"{error.msg} at character {error.pos + 1}"
    except RecursionError:
        why = "it is nested too deeply"
    except ValueError:  # Python reads no longer ones
        why = "it has a number of thousands of digits"
    raise Fault(f"{where} is not JSON: {why}.", "lines that are not JSON")


def record(text: str, where: str, keys: Sequence[str], what: str) -> dict[str, Any]:
    """The JSON object that a line holds, with these keys at least; `what` says what it should be.

    >>> record('{"sents": []}', "x.jsonl, line 3", ["sents"], "a document")
    {'sents': []}
    """
    found: Any = json_value(text, where)
    missing = [key for key in keys if not isinstance(found, dict) or key not in found]
    if missing:
        raise Fault(
            f"{where} has no {' and no '.join(missing)}; {what} has {', '.join(keys)}.",
            f"lines without {' and '.join(keys)}",
        )
    assert isinstance(found, dict)  # or a key would be missing
    return found


def need(holds: bool, where: str, fault: str, reason: str) -> None:
    """Refuse a record of which something does not hold."""
    if not holds:
        raise Fault(f"{where} {fault}.", reason)
