"""The lock of a run directory, and journal.jsonl: long work written down unit by unit.

The first line of a journal is a header with the sweep's fingerprint: what must be equal for old
results to count. Every other line is one finished unit, on the disk before `append` returns, so
that a killed sweep goes on where it was.
"""

from __future__ import annotations

import base64
import contextlib
import errno
import os
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from filelock import BaseFileLock, FileLock, Timeout, lock_descriptor

from headcount.errors import RunError, UsageError
from headcount.records.files import (
    InnerPath,
    json_decode,
    json_encode,
    reason,
    sync_folder,
    write_all,
)
from headcount.records.provenance import version

# --- The lock of a folder -----------------------------------------------------------------------

LOCK_FILE = ".lock"

#: File systems without locks raise one of these; then nobody is kept out.
_NO_LOCKS = (errno.ENOSYS, errno.ENOTSUP, errno.ENOLCK)


class Lock:
    """A folder's lock, held by one process at a time; the kernel frees it when the process ends.

    Several locks of one process on one folder share it, so a table can be saved into a run that
    is open.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     lock = Lock(folder)
    ...     print(lock.acquire())
    ...     print([path.name for path in Path(folder).iterdir()])
    ...     lock.release()
    ...     print([path.name for path in Path(folder).iterdir()])
    True
    ['.lock']
    []
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self._release: weakref.finalize | None = None

    def acquire(self) -> bool:
        """Take the lock, or say who has it; True when this process did not have it yet."""
        if self._release is not None and self._release.alive:
            return False
        lock = FileLock(
            self.folder.resolve() / LOCK_FILE,
            blocking=False,
            thread_local=False,
            is_singleton=True,
            fallback_to_soft=False,
            on_acquired=_write_process_id,
        )
        is_new = not lock.is_locked
        try:
            (InnerPath(self.folder) / LOCK_FILE).exists()  # a link is refused
            lock.acquire()
        except Timeout:
            raise RunError(
                f"{self.folder}/ is being written by {self._holder()}; wait until it has ended, "
                "or choose another folder."
            ) from None
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                raise RunError(
                    f"{self.folder}/ cannot be written to: {reason(error)}. Choose another folder."
                ) from error
        self._release = weakref.finalize(self, _release, lock)
        return is_new

    def release(self) -> None:
        """Give the lock back; without a lock this does nothing."""
        if self._release is not None:
            self._release()

    def _holder(self) -> str:
        with contextlib.suppress(OSError, UnicodeDecodeError):
            holder = (self.folder / LOCK_FILE).read_text(encoding="ascii")
            if holder.isdigit():
                return f"process {holder}"
        return "another process"


def _write_process_id(descriptor: int) -> None:
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, str(os.getpid()).encode(), 0)


def _release(lock: BaseFileLock) -> None:
    """Drop one share; the last one removes the file. A forked child has no share of it."""
    if lock.lock_counter == 1:
        with contextlib.suppress(OSError):
            Path(lock.lock_file).unlink()
    lock.release()


# --- journal.jsonl ------------------------------------------------------------------------------

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

    def __init__(self, path: InnerPath, descriptor: int, lines: _Lines) -> None:
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
    def open(cls, path: str | os.PathLike[str], fingerprint: Mapping[str, Any]) -> Journal:
        """Begin a journal, or continue one with the same fingerprint."""
        path = InnerPath.file(path)
        begin = _header(fingerprint)
        descriptor = _open_locked(path)
        try:
            if _is_unbegun(path):
                _begin(path, descriptor, begin)
            lines = _Lines(path)
            now = json_decode(json_encode(fingerprint))
            check_same(lines.fingerprint, now, f"{path} was begun")
        except BaseException:
            os.close(descriptor)
            raise
        return cls(path, descriptor, lines)

    @staticmethod
    def is_of(path: str | os.PathLike[str], fingerprint: Mapping[str, Any]) -> bool:
        """Whether a journal was begun by this version with the same fingerprint."""
        return _first_line(InnerPath.file(path)) == _header(fingerprint)

    def append(self, unit: str, result: Any) -> None:
        """Write one finished unit down; it has reached the disk when this returns."""
        if unit in self.done:
            raise UsageError(f"'{unit}' is already in {self.path}; each unit is written once.")
        line = json_encode({"unit": unit, "result": result})
        self._write(line.encode() + b"\n", unit)
        # The result as the file gives it back, so that resumed and unbroken work see the same.
        self.done[unit] = json_decode(line)["result"]

    def close(self) -> None:
        """Close the file; `done` can still be read."""
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


def _header(fingerprint: Mapping[str, Any]) -> bytes:
    header = {"kind": _KIND, "schema": SCHEMA, "headcount": version(), "fingerprint": fingerprint}
    return json_encode(header).encode() + b"\n"


class _Lines:
    """What a journal's file says, up to the end of its last whole line."""

    def __init__(self, path: InnerPath) -> None:
        self.done: dict[str, Any] = {}
        self.dropped = 0
        with os.fdopen(path.open(os.O_RDONLY), "rb") as file:
            line = file.readline()
            header = _object(line) if line.endswith(b"\n") else {}
            fingerprint = header.get("fingerprint", {})
            if header.get("kind") != _KIND or not isinstance(fingerprint, dict):
                raise RunError(
                    f"{path} is not a journal of headcount: its first line is not a journal's "
                    "header. Choose another folder, or move that file away."
                )
            if header.get("schema") != SCHEMA:
                raise RunError(
                    f"{path} was written with schema {header.get('schema')}; this headcount "
                    f"{version()} reads up to {SCHEMA}: upgrade headcount or choose another folder."
                )
            if header.get("headcount") != version():
                raise RunError(
                    f"{path} was begun by headcount {header.get('headcount')}, and this is "
                    f"{version()}: what two versions measured is not mixed. Use that "
                    "version, choose another folder, or delete that file to start anew."
                )
            self.fingerprint = fingerprint
            self.end = len(line)
            for number, line in enumerate(file, start=2):
                if not line.endswith(b"\n"):  # only the last line can lack its end
                    self.dropped = 1
                    break
                unit, result = self._read_unit(line, f"{path} is damaged in line {number}:")
                self.done[unit] = result
                self.end += len(line)

    def _read_unit(self, line: bytes, damaged: str) -> tuple[str, Any]:
        entry = _object(line)
        if not isinstance(entry.get("unit"), str) or "result" not in entry:
            why = "it is not a finished unit"
        elif entry["unit"] in self.done:
            why = f"'{entry['unit']}' is there twice"
        else:
            return entry["unit"], entry["result"]
        raise RunError(f"{damaged} {why}. Restore the file, or delete it to start anew.")


def _object(line: bytes) -> dict[str, Any]:
    """The JSON object in a line; empty where there is none."""
    try:
        found = json_decode(line.decode("utf-8"))
    except (ValueError, TypeError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _first_line(path: InnerPath) -> bytes:
    with os.fdopen(path.open(os.O_RDONLY), "rb") as file:
        return file.readline()


def _is_unbegun(path: InnerPath) -> bool:
    """Whether the file is empty, or was killed within its header."""
    line = _first_line(path)
    start = min(len(line), len(_OPENING))
    return not line.endswith(b"\n") and line[:start] == _OPENING[:start]


def _begin(path: InnerPath, descriptor: int, header: bytes) -> None:
    """Write the header; where that fails, leave no file."""
    try:
        os.ftruncate(descriptor, 0)
        write_all(descriptor, header)
        os.fsync(descriptor)
        sync_folder(Path(path.parent))
    except BaseException as error:
        path.remove()
        if not isinstance(error, OSError):
            raise
        raise RunError(
            f"{path} could not be begun: {reason(error)}. Nothing was left behind; "
            "free some room or choose another folder."
        ) from error


def _open_locked(path: InnerPath) -> int:
    """Open for writing, and keep every other writer out."""
    descriptor = None
    try:
        descriptor = path.open(os.O_RDWR | os.O_CREAT)
        free = lock_descriptor(descriptor, blocking=False)
    except OSError as error:
        if descriptor is not None and error.errno in _NO_LOCKS:
            return descriptor
        if descriptor is not None:
            os.close(descriptor)
        raise RunError(
            f"{path} cannot be written to: {reason(error)}. Choose another folder."
        ) from error
    if not free:
        os.close(descriptor)
        raise RunError(
            f"{path} is open for writing already; wait until that work has ended, "
            "or choose another folder."
        )
    return descriptor


def check_same(was: Mapping[str, Any], now: Mapping[str, Any], begun: str) -> None:
    """Refuse to mix results: name the first key that differs, and both values."""
    before, after = _flat(was), _flat(now)
    for key in before | after:
        old, new = before.get(key, "nothing"), after.get(key, "nothing")
        if old != new:
            raise RunError(
                f"{begun} with {key} = {old:.80}, and now {key} = {new:.80}; run it as "
                "before to continue, choose another folder, or delete that file to start anew."
            )


def _flat(tree: Mapping[str, Any], stem: str = "") -> dict[str, str]:
    """Nested keys with dots, values as JSON: so NaN equals NaN, and 1 is not true."""
    leaves: dict[str, str] = {}
    for key, value in tree.items():
        if isinstance(value, dict) and value:
            leaves.update(_flat(value, f"{stem}{key}."))
        else:
            leaves[stem + key] = json_encode(value)
    return leaves


# --- What a piece of work has done, unit by unit ------------------------------------------------


class Ledger:
    """Units of one piece of work, by name: in a journal where there is one, else in memory.

    A unit is numbers, text, lists, dictionaries and arrays of these; it is written once, and one
    that is there is not done again.

    >>> ledger = Ledger(None, "sweep")
    >>> ledger["batch 0 whole"] = np.zeros((1, 2))
    >>> "batch 0 whole" in ledger, ledger["batch 0 whole"].tolist(), "batch 1 whole" in ledger
    (True, [[0.0, 0.0]], False)
    """

    def __init__(self, journal: Journal | None, name: str) -> None:
        self._journal = journal
        self._name = name
        self._done: dict[str, Any] = {} if journal is None else journal.done

    def begin(self, settings: Mapping[str, Any]) -> None:
        """Write down what the units belong to, or refuse to mix them with others."""
        if self._journal is not None:
            self["settings"] = dict(settings)
            now = json_decode(json_encode(dict(settings)))
            begun = f"{self._journal.path} has units of '{self._name}'"
            check_same(self._done[f"{self._name} settings"], now, begun)

    def __contains__(self, unit: str) -> bool:
        return f"{self._name} {unit}" in self._done

    def __getitem__(self, unit: str) -> Any:
        return _unpacked(self._done[f"{self._name} {unit}"])

    def __setitem__(self, unit: str, value: Any) -> None:
        """Keep a unit; it is on the disk, where there is a journal, when this returns."""
        if unit in self:
            return
        if self._journal is None:
            self._done[f"{self._name} {unit}"] = value
        else:
            self._journal.append(f"{self._name} {unit}", _packed(value))


_ARRAY = "$array"


def _packed(value: Any) -> Any:
    """The value with arrays as JSON can hold them, bit by bit and a third as long as digits."""
    if isinstance(value, np.ndarray):
        text = base64.b64encode(np.ascontiguousarray(value).tobytes()).decode("ascii")
        return {_ARRAY: [value.dtype.str, list(value.shape), text]}
    if isinstance(value, Mapping):
        return {key: _packed(one) for key, one in value.items()}
    return [_packed(one) for one in value] if isinstance(value, list | tuple) else value


def _unpacked(value: Any) -> Any:
    if isinstance(value, dict) and value.keys() == {_ARRAY}:
        kind, shape, text = value[_ARRAY]
        return np.frombuffer(base64.b64decode(text), dtype=np.dtype(kind)).reshape(shape)
    if isinstance(value, dict):
        return {key: _unpacked(one) for key, one in value.items()}
    return [_unpacked(one) for one in value] if isinstance(value, list) else value
