"""Files that are written whole or not at all, and JSON that gives back every float as it was.

NaN and infinities, which JSON cannot write, become ``{"$float": "nan"}``.
"""

from __future__ import annotations

import contextlib
import errno
import json
import math
import os
import re
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from headcount.errors import RunError, UsageError
from headcount.records.heads import Head

# --- Write a file whole or not at all -----------------------------------------------------------

#: The process that writes it (six digits) and two digits more.
_LEFTOVER = re.compile(r"\.(.+)\.([0-9a-f]{6})[0-9a-f]{2}\.tmp")


def write_bytes(path: str | Path, data: bytes, *, tidy: bool = True) -> None:
    """Put data at path in one step; whatever happens on the way, the old file stays whole.

    `tidy` also removes drafts of this file that killed processes left: for folders with few files,
    since it reads their names.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_bytes(Path(folder, "note.txt"), b"whole")
    ...     Path(folder, "note.txt").read_text()
    'whole'
    """
    path = Path(path)
    mark = f"{os.getpid() & 0xFFFFFF:06x}{secrets.token_hex(1)}"
    draft = path.with_name(f".{path.name}.{mark}.tmp")
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        try:
            write_all(descriptor, data)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        os.replace(draft, path)  # noqa: PTH105 - the call whose promise this module is about
        if tidy:
            _drop_leftovers(path)
        sync_folder(path.parent)
    except OSError as error:
        there = path.exists()
        left = "The file that was there is untouched" if there else "Nothing was left behind"
        raise RunError(
            f"{path} could not be written: {reason(error)}. {left}; "
            "free some room or choose another folder."
        ) from error
    finally:
        # After os.replace there is no draft; after anything else, Ctrl-C included, there may be.
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)


def _drop_leftovers(path: Path) -> None:
    """Remove drafts of this file whose process is gone: it was killed while it wrote."""
    if os.name != "posix":
        return
    for name in os.listdir(path.parent):  # noqa: PTH208 - names are enough
        found = _LEFTOVER.fullmatch(name)
        if found is not None and found[1] == path.name:
            try:
                os.kill(int(found[2], 16), 0)
            except ProcessLookupError:
                path.with_name(name).unlink(missing_ok=True)
            except OSError:  # somebody else's, and alive
                continue


def write_all(descriptor: int, data: bytes) -> None:
    """Write every byte: os.write may take only a part of them when the disk fills up."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def is_leftover(name: str) -> bool:
    """Whether a file is a draft that a killed process left behind.

    >>> is_leftover(".run.json.0a1b2c3d.tmp"), is_leftover("notes.tmp")
    (True, False)
    """
    return _LEFTOVER.fullmatch(name) is not None


def reason(error: OSError) -> str:
    """Why the system refused, in words."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return "the disk is full"
    return (error.strerror or str(error)).lower()


def sync_folder(folder: Path) -> None:
    """Make the new name itself survive a power cut (POSIX; elsewhere folders cannot be synced)."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


# --- JSON that gives back every float as it was -------------------------------------------------

_FLOAT = "$float"


def json_encode(value: Any, *, indent: int | None = None, sort_keys: bool = False) -> str:
    """Write a value as strict JSON; NumPy numbers and arrays become numbers and lists.

    >>> json_encode({"loss": float("nan"), "accuracy": 0.1})
    '{"loss": {"$float": "nan"}, "accuracy": 0.1}'
    """
    return json.dumps(to_plain(value), indent=indent, sort_keys=sort_keys, allow_nan=False)


def json_decode(text: str | bytes) -> Any:
    """Read what `json_encode` wrote; raises ValueError for anything that is not JSON.

    >>> json_decode('{"loss": {"$float": "-inf"}}')
    {'loss': -inf}
    """
    return json.loads(text, object_hook=_read_float, parse_constant=_refuse_constant)


def to_plain(value: Any, where: str = "") -> Any:
    """The same value made of what JSON knows: dict, list, str, int, float, bool and None."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, Head):
        return str(value)
    if isinstance(value, str):
        return str(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):  # numpy.float64 loses its type, not its value
        return float(value) if math.isfinite(value) else {_FLOAT: repr(float(value))}
    if isinstance(value, Mapping):
        return {_key(key, where): to_plain(item, f"{where}.{key}") for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_plain(item, f"{where}[{number}]") for number, item in enumerate(value)]
    # Arrays and their scalars know how to become lists; paths become text.
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if hasattr(value, "tolist"):
        plain = value.tolist()
        if type(plain) is not type(value):
            return to_plain(plain, where)
    raise UsageError(
        f"{where.lstrip('.') or 'The value'} is of type {type(value).__name__}, which cannot be "
        "written as JSON; give numbers, text, lists, arrays or dicts of them."
    )


def to_strict(value: Any) -> Any:
    """The same for readers that know nothing of our marks: NaN is null, an infinity its name.

    >>> to_strict({"loss": float("nan"), "ratio": float("inf")})
    {'loss': None, 'ratio': 'Infinity'}
    """
    return json.loads(json_encode(value), object_hook=_name_float)


def _key(key: Any, where: str) -> str:
    """A key must be text already: JSON would turn 1 into "1" without a word."""
    if not isinstance(key, str):
        raise UsageError(
            f"{where.lstrip('.') or 'The value'} has the key {key!r}; keys are text in JSON, "
            f"so write {str(key)!r}."
        )
    if key == _FLOAT:
        raise UsageError(f"The key '{_FLOAT}' is kept for NaN and infinity; choose another key.")
    return key


def _read_float(found: dict[str, Any]) -> Any:
    return float(str(found[_FLOAT])) if found.keys() == {_FLOAT} else found


def _name_float(found: dict[str, Any]) -> Any:
    if found.keys() != {_FLOAT}:
        return found
    return {"nan": None, "inf": "Infinity", "-inf": "-Infinity"}[found[_FLOAT]]


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")
