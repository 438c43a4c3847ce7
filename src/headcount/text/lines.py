"""A text file as numbered lines: found, unpacked, decoded, or refused in one sentence."""

from __future__ import annotations

import bz2
import csv
import difflib
import gzip
import io
import json
import lzma
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

from headcount.errors import Fault, InputError

# --- A text file as numbered lines --------------------------------------------------------------

#: What a corpus file can be, by suffix.
FORMATS = {
    ".txt": "txt",
    ".tsv": "tsv",
    ".csv": "csv",
    ".conllu": "conllu",
    ".conll": "conll",
    ".jsonl": "jsonl",
}
#: What a suffix does not tell: kinds of JSON lines, and GAP's table.
FURTHER = ("coref", "predicates", "gap")
#: How it can be packed, by a second suffix.
PACKINGS: dict[str, Callable[..., IO[bytes]]] = {
    ".gz": cast("Callable[..., IO[bytes]]", gzip.open),
    ".xz": cast("Callable[..., IO[bytes]]", lzma.open),
    ".bz2": cast("Callable[..., IO[bytes]]", bz2.open),
}
#: Bytes of a line: a document of a coreference corpus has some hundred thousand.
_LONGEST = 16 << 20
_BOM = b"\xef\xbb\xbf"
_UTF16 = (b"\xff\xfe", b"\xfe\xff")


@dataclass(frozen=True)
class TextFile:
    """A named source of bytes that can be read more than once."""

    name: str
    open: Callable[[], IO[bytes]]

    def lines(self) -> Iterator[tuple[int, str]]:
        """Every line with its number from 1, without line end and byte-order mark.

        >>> list(TextFile("x", lambda: io.BytesIO(b"one\\r\\ntwo")).lines())
        [(1, 'one'), (2, 'two')]
        """
        try:
            with self.open() as stream:
                yield from self._decoded(stream)
        except (lzma.LZMAError, zlib.error, EOFError, gzip.BadGzipFile) as error:
            raise InputError(
                f"{self.name} cannot be unpacked ({error}): it is damaged, cut off, or not what "
                "its suffix says; fetch it again or unpack it by hand."
            ) from error
        except OSError as error:
            raise InputError(f"{self.name} cannot be read: {error.strerror or error}.") from error

    def _decoded(self, stream: IO[bytes]) -> Iterator[tuple[int, str]]:
        offset = 0
        for number, raw in enumerate(iter(lambda: stream.readline(_LONGEST + 1), b""), start=1):
            if number == 1:
                self._refuse_utf16(raw)
            if len(raw) > _LONGEST:
                raise InputError(
                    f"{self.name} has a line {number} of more than {_LONGEST >> 20} MiB; it is not "
                    "text in lines, or its line ends are lost."
                )
            yield number, self._decode(raw, number, offset)
            offset += len(raw)

    def _decode(self, raw: bytes, number: int, offset: int) -> str:
        line = raw.removeprefix(_BOM) if number == 1 else raw
        if b"\0" in line:
            raise InputError(
                f"{self.name} looks like a binary file (zero byte in line {number}); give a text "
                f"file: {_allowed()}."
            )
        try:
            text = line.decode("utf-8")
        except UnicodeDecodeError as error:
            raise self._not_utf8(raw, error, number, offset + len(raw) - len(line)) from error
        return text.removesuffix("\n").removesuffix("\r")

    def _not_utf8(
        self, raw: bytes, error: UnicodeDecodeError, number: int, offset: int
    ) -> InputError:
        where = offset + error.start
        return InputError(
            f"{self.name} is not UTF-8: byte {where} (line {number}) is "
            f"0x{error.object[error.start]:02X}; convert it, e.g. "
            f"iconv -f latin1 -t utf-8 {self.name} > utf8-{Path(self.name).name}."
        )

    def _refuse_utf16(self, first: bytes) -> None:
        if first.startswith(_UTF16):
            raise InputError(
                f"{self.name} is UTF-16, not UTF-8: its first bytes (byte 0, line 1) say so; "
                f"convert it: iconv -f utf-16 -t utf-8 {self.name} > utf8-{Path(self.name).name}."
            )


def text_file(source: str | Path) -> TextFile:
    """The file at a path, or standard input for ``-``."""
    if str(source) == "-":
        content = sys.stdin.buffer.read()
        return TextFile("standard input", lambda: io.BytesIO(content))
    path = Path(source)
    _must_be_file(path)
    opener = PACKINGS.get(path.suffix.lower())
    if opener is None:
        return TextFile(str(path), lambda: path.open("rb"))
    return TextFile(str(path), lambda: opener(path, "rb"))


def format_of(source: str | Path, asked: str | None = None) -> str:
    """How a corpus file is written: what was asked for, else what its suffix says.

    >>> format_of("news.tsv.xz")
    'tsv'
    """
    if asked is not None:
        return _known_format(asked)
    if str(source) == "-":
        return "txt"
    path = Path(source)
    inner = path.with_suffix("") if path.suffix.lower() in PACKINGS else path
    found = FORMATS.get(inner.suffix.lower())
    if found is None:
        raise InputError(
            f"{path} has the suffix '{inner.suffix}', which says nothing of its format; "
            f"known are {_allowed()}, or say which it is with --format (format=)."
        )
    return found


def _known_format(asked: str) -> str:
    names = sorted({*FORMATS.values(), *FURTHER})
    if asked not in names:
        raise InputError(f"'{asked}' is not a corpus format; choose one of {', '.join(names)}.")
    return asked


def _allowed() -> str:
    return f"{', '.join(FORMATS)}, each also packed as {', '.join(PACKINGS)}"


def _must_be_file(path: Path) -> None:
    if path.is_dir():
        inside = sorted(entry.name for entry in path.iterdir() if _readable(entry))[:3]
        hint = f", e.g. {path / inside[0]}" if inside else f" ({_allowed()})"
        raise InputError(f"{path} is a folder; give one file{hint}.")
    if not path.exists():
        raise InputError(f"There is no file {path}{_nearest(path)}.")


def _readable(path: Path) -> bool:
    return any(suffix.lower() in FORMATS for suffix in path.suffixes)


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


# --- Lines as cells -----------------------------------------------------------------------------

#: A row's line in the file, and its cells.
Cells = tuple[int, list[str]]


def tab_cells(file: TextFile) -> Iterator[Cells]:
    """The cells of every line, blank ones included.

    >>> import io
    >>> list(tab_cells(TextFile("x.tsv", lambda: io.BytesIO(b'a\\tb "c"'))))
    [(1, ['a', 'b "c"'])]
    """
    for number, line in file.lines():
        yield number, line.split("\t")


def comma_cells(file: TextFile) -> Iterator[Cells]:
    """The cells of every row; a quoted cell may hold commas and line ends.

    >>> import io
    >>> list(comma_cells(TextFile("x.csv", lambda: io.BytesIO(b'a,"b, c"'))))
    [(1, ['a', 'b, c'])]
    """
    reader = csv.reader((line + "\n" for _, line in file.lines()), strict=True)
    last = 0
    try:
        for cells in reader:
            number, last = last + 1, reader.line_num
            yield number, cells
    except csv.Error as error:
        raise InputError(f"{file.name}, line {last + 1} is not proper CSV: {error}.") from error


# --- JSON lines as records: an object a line ----------------------------------------------------

#: A line's number and text.
Line = tuple[int, str]


def lines(file: TextFile, skipped: Counter[str]) -> Iterator[Line]:
    """The lines of a file; blank ones are counted."""
    for number, line in file.lines():
        if line.strip():
            yield number, line
        else:
            skipped["blank lines"] += 1


def record(line: Line, name: str, keys: Sequence[str], what: str) -> dict[str, Any]:
    """The object that a line holds, with these keys at least; `what` says what it should be.

    >>> record((3, '{"sents": []}'), "x.jsonl", ["sents"], "a document")
    {'sents': []}
    """
    number, text = line
    try:
        found = json.loads(text)
    except json.JSONDecodeError as error:
        raise Fault(
            f"{name}, line {number} is not JSON: {error.msg} at character {error.pos + 1}.",
            "lines that are not JSON",
        ) from error
    missing = [key for key in keys if not isinstance(found, dict) or key not in found]
    if missing:
        raise Fault(
            f"{name}, line {number} has no {' and no '.join(missing)}; {what} has "
            f"{', '.join(keys)}.",
            f"lines without {' and '.join(keys)}",
        )
    assert isinstance(found, dict)  # or a key would be missing
    return found


def need(holds: bool, where: str, said: str, reason: str) -> None:
    """Refuse a record of which something does not hold."""
    if not holds:
        raise Fault(f"{where} {said}.", reason)
