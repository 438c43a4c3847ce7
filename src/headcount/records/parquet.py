"""Files of a run: frames and head tables as Parquet, arrays as .npz.

A table's Parquet file carries its own descriptions, in the metadata of the schema.
"""

from __future__ import annotations

import io
import math
import os
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from headcount.errors import RunError, UsageError
from headcount.records.columns import Column
from headcount.records.files import InnerPath, json_decode, json_encode
from headcount.records.provenance import version
from headcount.records.table import INDEX, SCHEMA, HeadTable

_KEY = b"headcount"


def table_bytes(table: HeadTable) -> bytes:
    """A table as Parquet: stack, layer, head, the statistics, then their bounds."""
    return frame_bytes(table.wide().reset_index(), about_table(table))


def about_table(table: HeadTable) -> dict[str, Any]:
    """What is known about a table besides its numbers; kept in the Parquet file and in run.json."""
    return {
        "schema": SCHEMA,
        "columns": [table.column(name).to_dict() for name in table.names],
        "notes": table.notes,
        "provenance": table.provenance,
        "origins": table.origins,
        "details": sorted(table.details),
    }


def frame_bytes(frame: pd.DataFrame, about: Mapping[str, Any] | None = None) -> bytes:
    """A frame as Parquet; an index that has names becomes columns, another one is left out."""
    if any(name is not None for name in frame.index.names):
        frame = frame.reset_index()
    data = pa.Table.from_pandas(frame, preserve_index=False)
    if about is not None:
        kept = data.schema.metadata or {}
        data = data.replace_schema_metadata({**kept, _KEY: json_encode(about).encode()})
    sink = io.BytesIO()
    pq.write_table(data, sink)
    return sink.getvalue()


def read_frame(path: str | os.PathLike[str]) -> pd.DataFrame:
    """Read a frame, or say in a sentence why not."""
    data = _read(path)
    try:
        return data.to_pandas()
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise RunError(
            f"{path} holds a description of its columns that cannot be read ({error}); make it "
            "again or choose another folder."
        ) from error


def read_table(path: str | os.PathLike[str], about: Mapping[str, Any] | None = None) -> HeadTable:
    """Read a table; `about` stands in for descriptions that another tool dropped."""
    data = _read(path)
    own = (data.schema.metadata or {}).get(_KEY)
    try:
        known = json_decode(own) if own is not None else about or {}
        check_schema(known, path)
        return _table(data.to_pandas(), known)
    except (UsageError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise RunError(
            f"{path} is not a table of heads that headcount wrote ({error}); "
            "make it again or choose another folder."
        ) from error


def check_schema(record: Mapping[str, Any], path: str | os.PathLike[str]) -> None:
    """Refuse what a later version wrote, by name."""
    schema = record.get("schema", SCHEMA)
    if not isinstance(schema, int) or isinstance(schema, bool) or schema < 1:
        raise RunError(
            f"{path} has the schema {schema!r}, which headcount never writes; "
            "restore it or choose another folder."
        )
    if schema > SCHEMA:
        raise RunError(
            f"{path} was written with schema {schema}; this headcount {version()} reads up to "
            f"{SCHEMA}: upgrade headcount or choose another folder."
        )


#: Bytes that a file may come to in memory: what is packed well can be a thousand times its size.
_MOST = 1 << 30


def _check_size(path: str | os.PathLike[str], size: int, most: int) -> None:
    if size > most:
        raise RunError(
            f"{path} would take {size:,} bytes of memory, and such a file at most {most:,}; it is "
            "damaged, or not headcount's. Make it again, or restore it."
        )


def _read(path: str | os.PathLike[str]) -> pa.Table:
    try:
        data = pa.BufferReader(InnerPath.of(path).read())
        for _ in parquet_batches(data, partial(_check_size, path, most=_MOST)):
            pass
        return pq.ParquetFile(data).read()
    except FileNotFoundError as error:
        raise RunError(f"There is no {path}; make it first, or check the folder's name.") from error
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise RunError(
            f"{path} cannot be read: it is cut off, damaged or not Parquet. "
            "Make it again, or restore it."
        ) from error


def parquet_batches(
    source: Any, check: Callable[[int], None], names: Sequence[str] | None = None, rows: int = 4096
) -> Iterator[pa.RecordBatch]:
    """The rows of a Parquet file, strings as dictionaries; `check` gets their bytes beforehand.

    A kilobyte may hold a long string a million times: by its place in a dictionary, or as what the
    string before begins with.
    """
    with pq.ParquetFile(source) as file:
        about = file.metadata
    groups = (about.row_group(number) for number in range(about.num_row_groups))
    leaves = [group.column(place) for group in groups for place in range(about.num_columns)]
    check(sum(max(leaf.total_uncompressed_size, 8 * leaf.num_values) for leaf in leaves))
    texts = [leaf for leaf in leaves if leaf.physical_type == "BYTE_ARRAY"]
    begun = [leaf for leaf in texts if "BYTE_ARRAY" in str(leaf.encodings)]
    plain = {leaf.path_in_schema for leaf in begun}  # of these Arrow makes no dictionaries
    strings = {leaf.path_in_schema for leaf in texts if "DICTIONARY" in str(leaf.encodings)}
    longest = max((leaf.total_uncompressed_size for leaf in begun), default=1)
    with pq.ParquetFile(source, read_dictionary=sorted(strings - plain)) as file:
        at_once = max(1, min(rows, _MOST // 16 // max(1, longest)))
        unpacked = 0
        for batch in file.iter_batches(batch_size=at_once, columns=names):
            unpacked += sum(map(unpacked_size, batch.columns))
            check(unpacked)
            yield batch


def unpacked_size(array: pa.Array) -> int:
    """Bytes of an array where each string stands by itself, not in a dictionary.

    >>> unpacked_size(pa.array(["rain", "rain", None]).dictionary_encode())
    8
    """
    if pa.types.is_nested(array.type):
        parts = array.flatten()
        return sum(map(unpacked_size, parts)) if isinstance(parts, list) else unpacked_size(parts)
    if not pa.types.is_dictionary(array.type):
        return int(array.nbytes)
    if pa.types.is_primitive(array.type.value_type):
        return 8 * len(array)
    return pc.sum(pc.binary_length(array.dictionary).take(array.indices)).as_py() or 0


def _table(wide: pd.DataFrame, about: Mapping[str, Any]) -> HeadTable:
    """Separate values from bounds, and put everything back in its place.

    What is known of columns that another tool dropped is left out.
    """
    wide, about = _as_measured(wide.set_index(list(INDEX)), about)
    described = {one["name"]: Column.from_dict(one) for one in about.get("columns", [])}
    there = [str(name) for name in wide.columns]
    names = [
        name
        for name in there
        if name in described
        or not (name.endswith(("_low", "_high")) and name.rpartition("_")[0] in there)
    ]

    def of_columns(known: Mapping[str, Any]) -> dict[str, Any]:
        return {name: known[name] for name in names if name in known}

    def bounds(end: str) -> pd.DataFrame:
        ends = [name + end for name in names if name + end in wide and name + end not in names]
        return wide[ends].rename(columns=lambda name: name.removesuffix(end))

    return HeadTable(
        wide[names],
        of_columns(described),
        low=bounds("_low"),
        high=bounds("_high"),
        notes=of_columns(about.get("notes", {})),
        provenance=about.get("provenance"),
        origins=of_columns(about.get("origins", {})),
    )


#: A column that has another name today under these settings: its name, and what it says.
_RENAMED = {"relevance": ("rule", "default", "contribution")}


def _as_measured(
    wide: pd.DataFrame, about: Mapping[str, Any]
) -> tuple[pd.DataFrame, Mapping[str, Any]]:
    """Columns of earlier versions under the names that what was measured has today."""
    for old, (key, value, new) in _RENAMED.items():
        origins = about.get("origins", {})
        origin = origins.get(old) or about.get("provenance") or {}
        if old not in wide or origin.get("settings", {}).get(key) != value or new in wide:
            continue
        ends = {old + end: new + end for end in ("", "_low", "_high")}
        wide = wide.rename(columns=ends)
        meaning = f"Called {old} when it was measured ({key} '{value}')."
        columns = [
            one if one["name"] != old else {**one, "name": new, "meaning": meaning, "paper": ""}
            for one in about.get("columns", [])
        ]
        moved = {
            part: {ends.get(name, name): one for name, one in about.get(part, {}).items()}
            for part in ("notes", "origins")
        }
        about = {**about, "columns": columns, **moved}
    return wide, about


# --- Arrays as .npz -----------------------------------------------------------------------------


def npz_bytes(arrays: Mapping[str, np.ndarray]) -> bytes:
    """Arrays as the bytes of a file; Python objects are refused, since they would need pickle.

    >>> npz_bytes({"distance": np.zeros(2)})[:2]
    b'PK'
    """
    for key, array in arrays.items():
        if np.asarray(array).dtype.hasobject:
            raise UsageError(f"Array '{key}' holds Python objects; give numbers or text.")
    sink = io.BytesIO()
    np.savez_compressed(sink, **arrays)  # type: ignore[arg-type]  # no array is called allow_pickle
    return sink.getvalue()


def read_npz(path: str | os.PathLike[str], most: int = _MOST) -> dict[str, np.ndarray]:
    """The arrays of a file that is there, of so many bytes together at most."""
    try:
        data = InnerPath.of(path).read()
        _check_size(path, _declared(data), most)
        with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
            found = {key: arrays[key] for key in arrays.files}
        if not all(isinstance(one, np.ndarray) for one in found.values()):
            raise ValueError("NumPy hands a member that is no array on as bytes")
        return found
    except (FileNotFoundError, MemoryError, RunError):
        raise
    except Exception as error:  # zipfile, zlib and numpy raise a dozen kinds for damaged bytes
        raise RunError(
            f"{path} cannot be read: it is cut off or damaged. Make it again, or restore it."
        ) from error


def _declared(data: bytes) -> int:
    """Bytes of all arrays of a file by its headers: the archive's, and each array's own."""
    size = 0
    with zipfile.ZipFile(io.BytesIO(data)) as members:
        for member in members.infolist():
            with members.open(member) as file:
                major, _ = np.lib.format.read_magic(file)
                read = np.lib.format.read_array_header_1_0
                shape, _, dtype = (read if major == 1 else np.lib.format.read_array_header_2_0)(
                    file
                )
            size += max(member.file_size, math.prod(shape) * dtype.itemsize)
    return size
