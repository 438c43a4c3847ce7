"""Damage to files: what disks, editors, exporters and ill will do to bytes that were sound.

Everything is drawn from a `random.Random`, so that hypothesis can shrink it and a seed repeat it.

>>> from random import Random
>>> damaged(b"one\\ttwo\\nthree\\tfour\\n", Random(3)) != b"one\\ttwo\\nthree\\tfour\\n"
True
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from random import Random
from typing import Any

Damage = Callable[[bytes, Random], bytes]

#: Values that readers trip over, put where a number or a word stood.
ODD = [
    b"0",
    b"-1",
    b"1e999",
    b"-0.0",
    b"nan",
    b"NaN",
    b"Infinity",
    b"9" * 20,
    b"9" * 400,
    b"9" * 5_000,
    b"-" + b"9" * 5_000,
    b"1" + b"0" * 18,
    b"4294967296",
    b"0x10",
    b"1_000",
    b"\xd9\xa3",  # a digit that is not ASCII
    b"",
    b" ",
    b"_",
    b"-",
    b"*",
    b"(",
    b")",
    b"null",
    b"true",
    b"[]",
    b"{}",
    b'""',
    b'"x"',
    b"\xc2\xa0",
    b"\xe2\x80\xa8",
    b"\x1b[31m",
    b"../../x",
    b"/dev/null",
    b"%s%n",
    b"a" * 3_000,
]
#: Bytes that are no text, or only half of it.
RAW = [
    b"\0",
    b"\xff",
    b"\xc3",
    b"\xed\xa0\x80",
    b"\xef\xbb\xbf",
    b"\xff\xfe",
    b"\x85",
    b"\r",
    b"\x1a",
    b"\n",
    b"\t",
    b'"',
    b"\\",
    b"{",
    b"[",
]


def _place(data: bytes, rng: Random) -> int:
    return rng.randrange(len(data) + 1)


def flip(data: bytes, rng: Random) -> bytes:
    """One to eight bytes are something else."""
    found = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 8])):
        if found:
            found[rng.randrange(len(found))] = rng.randrange(256)
    return bytes(found)


def cut_off(data: bytes, rng: Random) -> bytes:
    """The end is missing, as after a broken download."""
    return data[: _place(data, rng)]


def lose_middle(data: bytes, rng: Random) -> bytes:
    """A piece is missing."""
    first, last = sorted((_place(data, rng), _place(data, rng)))
    return data[:first] + data[last:]


def zeros(data: bytes, rng: Random) -> bytes:
    """A block of zeros, as a crashed file system leaves it."""
    at = _place(data, rng)
    size = rng.choice([1, 16, 512])
    return data[:at] + b"\0" * size + data[at + size :]


def put_raw(data: bytes, rng: Random) -> bytes:
    """Bytes that are no text."""
    at = _place(data, rng)
    return data[:at] + rng.choice(RAW) + data[at:]


def repeat(data: bytes, rng: Random) -> bytes:
    """A piece is there twice."""
    first, last = sorted((_place(data, rng), _place(data, rng)))
    return data[:last] + data[first:]


def lines(data: bytes, rng: Random) -> bytes:
    """Lines are lost, doubled, swapped, joined or blank."""
    rows = data.split(b"\n")
    at, other = rng.randrange(len(rows)), rng.randrange(len(rows))
    match rng.randrange(5):
        case 0:
            del rows[at]
        case 1:
            rows.insert(at, rows[other])
        case 2:
            rows[at], rows[other] = rows[other], rows[at]
        case 3:
            rows[at : at + 2] = [b"".join(rows[at : at + 2])]
        case _:
            rows[at] = b""
    return b"\n".join(rows)


def cells(data: bytes, rng: Random) -> bytes:
    """Cells of one row are lost, doubled, odd or many."""
    rows = data.split(b"\n")
    at = rng.randrange(len(rows))
    mark = rng.choice([b"\t", b"\t", b",", b" ", b"|"])
    row = rows[at].split(mark)
    cell = rng.randrange(len(row))
    match rng.randrange(4):
        case 0:
            del row[cell]
        case 1:
            row.insert(cell, row[cell])
        case 2:
            row[cell] = rng.choice(ODD)
        case _:
            row = row * rng.choice([2, 50])
    rows[at] = mark.join(row)
    return b"\n".join(rows)


def odd_value(data: bytes, rng: Random) -> bytes:
    """A number or a word is something odd."""
    found = list(re.finditer(rb"-?\d+(?:\.\d+)?|\w+", data))
    if not found:
        return rng.choice(ODD)
    at = rng.choice(found)
    return data[: at.start()] + rng.choice(ODD) + data[at.end() :]


def deep(data: bytes, rng: Random) -> bytes:
    """Brackets in brackets, deeper than a parser may go."""
    opening, closing = rng.choice([(b"[", b"]"), (b'{"a":', b"}"), (b"(", b")")])
    depth = rng.choice([30, 3_000, 200_000])
    inner = opening * depth + (b"1" + closing * depth if rng.random() < 0.5 else b"")
    at = _place(data, rng)
    return data[:at] + inner + data[at:]


def long_line(data: bytes, rng: Random) -> bytes:
    """A line of some hundred thousand characters or cells."""
    at = _place(data, rng)
    piece = rng.choice([b"x", b"x ", b"\t", b",", b'"', b"(", b"\\", b"1 "])
    return data[:at] + piece * (rng.choice([20_000, 200_000]) // len(piece)) + data[at:]


def other_json(data: bytes, rng: Random) -> bytes:
    """JSON that parses, with one value lost, of another type, or of another size."""
    rows = data.split(b"\n")
    whole = _json(data)
    at = rng.randrange(len(rows))
    found = whole if whole is not None else _json(rows[at])
    if not isinstance(found, dict | list):
        return odd_value(data, rng)
    _change(found, rng)
    written = json.dumps(found).encode()
    if whole is not None:
        return written
    rows[at] = written
    return b"\n".join(rows)


def _json(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


_VALUES: list[Any] = [
    None,
    True,
    0,
    -1,
    3,
    0.5,
    10**9,
    10**30,
    1e308,
    "",
    "x",
    "\n",
    "\ud800",
    [],
    [[]],
    {},
    [1, "a", None],
    {"a": {"b": []}},
]


def _change(found: Any, rng: Random) -> None:
    """One place of a nested value, anywhere in it."""
    place = found
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        if not keys:
            if isinstance(place, list):
                place.append(rng.choice(_VALUES))
            else:
                place["x"] = rng.choice(_VALUES)
            return
        key = rng.choice(keys)
        if isinstance(place[key], dict | list) and rng.random() < 0.75:
            place = place[key]
            continue
        match rng.randrange(4):
            case 0:
                del place[key]
            case 1 if isinstance(place, list):
                place.extend(place[:50])
            case 1:
                place["x" * rng.choice([1, 500])] = place[key]
            case _:
                place[key] = rng.choice(_VALUES)
        return


def empty(data: bytes, rng: Random) -> bytes:
    """Nothing, or only a line end, or only a mark."""
    return rng.choice([b"", b"\n", b"\n\n\n", b" ", b"\xef\xbb\xbf", b"#", b"{}", b"[]", b"null"])


BYTES: list[Damage] = [flip, flip, cut_off, lose_middle, zeros, put_raw, repeat, empty]
TEXT: list[Damage] = [*BYTES, lines, lines, cells, cells, odd_value, odd_value, odd_value]
TEXT += [deep, long_line, other_json, other_json, other_json]


def damaged(data: bytes, rng: Random, *, text: bool = True) -> bytes:
    """The data after one to three kinds of damage."""
    kinds = TEXT if text else BYTES
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        data = rng.choice(kinds)(data, rng)
    return data
