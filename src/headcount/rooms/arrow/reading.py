"""The rows of a Parquet file or an Arrow stream, refused before they fill the memory."""

from __future__ import annotations

import struct
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from headcount.errors import InputError
from headcount.records import parquet_batches, unpacked_size
from headcount.text import PACKINGS, Records, text_file

#: So many rows are read at once; a file may come to so many bytes, or to a hundred times its size.
_CHUNK, _SMALL = 256, 256 << 20


def arrow_records(path: Path, format: str) -> Records:
    """The rows of a Parquet file or an Arrow stream, some record batches in memory at a time."""
    (plain, kept), check = _unpacked(path), partial(_check_size, path)

    def batches(places: Sequence[int]) -> Iterator[Any]:
        _ = kept  # an unpacked copy lives as long as somebody may read it
        if format == "parquet":
            wanted = [names[place] for place in places]
            for batch in parquet_batches(plain, check, wanted, _CHUNK):
                yield batch.select(wanted)
            return
        with pa.memory_map(str(plain)) as file, pa.ipc.open_stream(file) as stream:
            size = 0
            for batch in stream:
                for start in range(0, len(batch), _CHUNK):
                    part = batch.select(places).slice(start, _CHUNK)
                    size += sum(map(unpacked_size, part.columns))
                    check(size)
                    yield part

    def rows(skipped: Counter[str], places: Sequence[int]) -> Iterator[tuple[int, Sequence[Any]]]:
        number = 0
        try:
            for batch in batches(places):
                columns = [column.to_pylist() for column in batch.columns]
                for cells in zip(*columns, strict=True):
                    number += 1
                    yield number, cells
        except (pa.ArrowException, OSError) as error:
            raise _unreadable(path, format, error) from error

    try:
        if format == "parquet":
            names = parquet.read_schema(plain).names
        else:
            with pa.memory_map(str(plain)) as file:
                check(sum(map(_declared, pa.ipc.MessageReader.open_stream(file))))
                file.seek(0)
                with pa.ipc.open_stream(file) as stream:
                    names = stream.schema.names
    except (pa.ArrowException, OSError, struct.error) as error:
        raise _unreadable(path, format, error) from error
    return Records(str(path), tuple(names), rows)


def _check_size(path: Path, size: int) -> None:
    """Refuse a file that comes to more in memory than it may."""
    if size > max(_SMALL, 100 * path.stat().st_size):
        raise InputError(
            f"{path} would unpack to {size:,} bytes or more, over 100 times its size; it is "
            "damaged or made to fill the memory: fetch it again or leave it out."
        )


def _unpacked(path: Path) -> tuple[Path, object]:
    """A file that can be read from any place: itself, or what a packed one holds.

    The second object keeps that one there; without it, it goes.
    """
    if path.suffix.lower() not in PACKINGS:
        return path, None
    room = tempfile.NamedTemporaryFile(suffix=path.stem)  # noqa: SIM115
    with text_file(path).stream() as stream:
        while part := stream.read(1 << 20):
            _check_size(path, room.tell() + len(part))
            room.write(part)
    room.flush()
    return Path(room.name), room


def _declared(message: Any) -> int:
    """Bytes that the packed buffers of an Arrow message come to, by the number before each.

    Arrow does not tell, so the message is read as the format has it: a table begins with the
    distance to the places of its fields; Message has a header, which in a DictionaryBatch is
    around the RecordBatch; that has buffers (their start and length) and a compression.
    """
    if message.type not in ("record batch", "dictionary"):
        return 0
    about, body = memoryview(message.metadata), memoryview(message.body)

    def number(kind: str, at: int) -> int:
        return int(struct.unpack_from(f"<{kind}", about, at)[0])

    def inner(table: int, field: int) -> int:
        """Where a field of a table points; 0 where it is not there."""
        places = table - number("i", table)
        there = 4 + 2 * field < number("H", places) and number("H", places + 4 + 2 * field)
        return table + there + number("I", table + there) if there else 0

    table = inner(number("I", 0), 2)
    if message.type == "dictionary":
        table = inner(table, 1)
    if not inner(table, 3):
        return 0
    buffers = inner(table, 2)
    spans = [
        (number("q", buffers + 4 + 16 * place), number("q", buffers + 12 + 16 * place))
        for place in range(number("I", buffers))
    ]
    return sum(int(struct.unpack_from("<q", body, at)[0]) for at, size in spans if size)


def _unreadable(path: Path, format: str, error: Exception) -> InputError:
    return InputError(
        f"{path} cannot be read as {format}: {str(error).splitlines()[0] if str(error) else error}"
        "; it is damaged, cut off, or not what its suffix says: fetch it again."
    )
