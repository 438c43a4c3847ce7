"""journal.jsonl: long work written down unit by unit, so that a killed sweep goes on.

The first line is a header with the sweep's fingerprint: what must be equal for old results to
count. Every other line is one finished unit. A line is on the disk before `append` returns.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from headcount.atomic import reason, sync_folder, write_all
from headcount.errors import RunError, UsageError
from headcount.exact_json import decode, encode
from headcount.lock import try_lock
from headcount.provenance import version

__all__ = ["SCHEMA", "Journal"]

#: The newest journal that this version reads and the one that it writes.
SCHEMA = 1

_KIND = "headcount journal"
_OPENING = b'{"kind": "headcount journal"'


class Journal:
    """Results of finished units, by name, kept in a file that only grows.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with Journal.open(Path(folder, "journal.jsonl"), {"seed": 0}) as journal:
    ...         journal.append("enc.0.3", {"loss": 0.25})
    ...     with Journal.open(Path(folder, "journal.jsonl"), {"seed": 0}) as journal:
    ...         print(journal.done)
    {'enc.0.3': {'loss': 0.25}}
    """

    def __init__(self, path: Path, descriptor: int, lines: _Lines) -> None:
        """Use `Journal.open`."""
        self.path = path
        self.fingerprint = lines.fingerprint
        #: Unit to result, in the order in which they ended.
        self.done = lines.done
        #: How many cut-off lines were found and dropped: 1 after a kill in mid-write, else 0.
        self.dropped = lines.dropped
        self._descriptor: int | None = descriptor
        self._end = lines.end
        self._ragged = lines.dropped > 0

    @classmethod
    def open(cls, path: str | Path, fingerprint: Mapping[str, Any]) -> Journal:
        """Begin a journal, or go on with one whose fingerprint is the same."""
        path = Path(path)
        header = _header(fingerprint)
        descriptor = _open_alone(path)
        try:
            if _is_unbegun(path):
                _begin(path, descriptor, header)
            lines = _Lines(path)
            _check_fingerprint(path, lines.fingerprint, decode(encode(fingerprint)))
        except BaseException:
            os.close(descriptor)
            raise
        return cls(path, descriptor, lines)

    def append(self, unit: str, result: Any) -> None:
        """Write one finished unit down; it has reached the disk when this returns."""
        if unit in self.done:
            raise UsageError(f"'{unit}' is already in {self.path}; each unit is written once.")
        line = encode({"unit": unit, "result": result})
        self._write(line.encode() + b"\n", unit)
        # The result as the file gives it back, so that resumed and unbroken work see the same.
        self.done[unit] = decode(line)["result"]

    def close(self) -> None:
        """Let go of the file; `done` can still be read."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_descriptor", None) is not None:
            self.close()

    def __repr__(self) -> str:
        return f"Journal('{self.path}', {len(self.done)} done)"

    def _write(self, line: bytes, unit: str) -> None:
        """Add a whole line, or leave the file as it was."""
        if self._descriptor is None:
            raise UsageError(f"{self.path} is closed, so '{unit}' cannot be added; open it again.")
        try:
            self._cut_ragged_end()
            self._ragged = True
            write_all(self._descriptor, line)
            os.fsync(self._descriptor)
        except BaseException as error:
            with contextlib.suppress(OSError):
                self._cut_ragged_end()
            if not isinstance(error, OSError):
                raise
            raise RunError(
                f"'{unit}' could not be added to {self.path}: {reason(error)}. What was done "
                f"before is safe ({len(self.done)} so far); free some room and run the same again."
            ) from error
        self._end += len(line)
        self._ragged = False

    def _cut_ragged_end(self) -> None:
        """Take away what lies behind the last whole line, and stand there."""
        assert self._descriptor is not None
        if self._ragged:
            os.ftruncate(self._descriptor, self._end)
            self._ragged = False
        os.lseek(self._descriptor, self._end, os.SEEK_SET)


class _Lines:
    """What a journal's file says, up to the end of its last whole line."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.done: dict[str, Any] = {}
        self.dropped = 0
        self.end = 0
        with path.open("rb") as file:
            self.fingerprint = self._read_header(file.readline())
            for number, line in enumerate(file, start=2):
                self._read_unit(number, line)

    def _read_header(self, line: bytes) -> dict[str, Any]:
        header = _object(line) if line.endswith(b"\n") else None
        if header is None or header.get("kind") != _KIND:
            raise RunError(
                f"{self.path} is not a journal of headcount: its first line is not a journal's "
                "header. Choose another folder, or move that file away."
            )
        if header.get("schema") != SCHEMA:
            raise RunError(
                f"{self.path} was written with schema {header.get('schema')}; this headcount "
                f"{version()} reads up to {SCHEMA}: upgrade headcount or choose another folder."
            )
        self.end = len(line)
        return dict(header.get("fingerprint", {}))

    def _read_unit(self, number: int, line: bytes) -> None:
        if not line.endswith(b"\n"):  # only the last line can lack its end
            self.dropped += 1
            return
        entry = _object(line)
        if entry is None or not isinstance(entry.get("unit"), str) or "result" not in entry:
            raise RunError(
                f"{self.path} is damaged in line {number}: it is not a finished unit. Restore the "
                "file, or delete it to begin afresh."
            )
        if entry["unit"] in self.done:
            raise RunError(
                f"{self.path} is damaged in line {number}: '{entry['unit']}' is there twice. "
                "Restore the file, or delete it to begin afresh."
            )
        self.done[entry["unit"]] = entry["result"]
        self.end += len(line)


def _object(line: bytes) -> dict[str, Any] | None:
    """The JSON object in a line, or None."""
    try:
        found = decode(line.decode("utf-8"))
    except (ValueError, TypeError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _header(fingerprint: Mapping[str, Any]) -> bytes:
    header = {
        "kind": _KIND,
        "schema": SCHEMA,
        "headcount": version(),
        "fingerprint": fingerprint,
    }
    return encode(header).encode() + b"\n"


def _is_unbegun(path: Path) -> bool:
    """Whether the file is empty, or was killed within its header."""
    with path.open("rb") as file:
        line = file.readline()
    start = min(len(line), len(_OPENING))
    return not line.endswith(b"\n") and line[:start] == _OPENING[:start]


def _begin(path: Path, descriptor: int, header: bytes) -> None:
    """Write the header; where that fails, leave no file."""
    try:
        os.ftruncate(descriptor, 0)
        write_all(descriptor, header)
        os.fsync(descriptor)
        sync_folder(path.parent)
    except BaseException as error:
        path.unlink(missing_ok=True)
        if not isinstance(error, OSError):
            raise
        raise RunError(
            f"{path} could not be begun: {reason(error)}. Nothing was left behind; "
            "free some room or choose another folder."
        ) from error


def _open_alone(path: Path) -> int:
    """Open for writing, and keep every other process out."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise RunError(
            f"{path} cannot be written to: {reason(error)}. Choose another folder."
        ) from error
    if not try_lock(descriptor):
        os.close(descriptor)
        raise RunError(
            f"{path} is open for writing already; wait until that work has ended, "
            "or choose another folder."
        )
    return descriptor


def _check_fingerprint(path: Path, old: dict[str, Any], new: dict[str, Any]) -> None:
    """Refuse to mix results: name the first key that differs, and both values."""
    before, after = _flat(old), _flat(new)
    for key in [*before, *(key for key in after if key not in before)]:
        was, now = before.get(key, "nothing"), after.get(key, "nothing")
        if was != now:
            raise RunError(
                f"{path} was begun with {key} = {was}, and now {key} = {now}; run it as before to "
                "go on, choose another folder, or delete that file to begin afresh."
            )


def _flat(tree: Mapping[str, Any], stem: str = "") -> dict[str, str]:
    """Nested keys with dots, values as JSON: so NaN equals NaN, and 1 is not true."""
    leaves: dict[str, str] = {}
    for key, value in tree.items():
        if isinstance(value, dict) and value:
            leaves.update(_flat(value, f"{stem}{key}."))
        else:
            leaves[stem + key] = encode(value)
    return leaves
