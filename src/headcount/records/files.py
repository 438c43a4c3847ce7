"""Files that are written whole or not at all, and reached through no link within a folder of ours.

And JSON that gives back every float as it was.

NaN and infinities, which JSON cannot write, become ``{"$float": "nan"}``.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import glob
import json
import math
import os
import re
import secrets
import shutil
import stat
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headcount.errors import RunError, UsageError
from headcount.records.heads import Head

# --- A file or folder below a folder of ours, reached without following links -------------------

_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0)
_BY_HANDLE = os.open in os.supports_dir_fd


_KEPT = re.compile(r"journal\.jsonl|(shard|until)-\d+\.(safetensors|pt)|training\.safetensors")
#: A draft: the process that writes it (six digits) and two digits more.
_LEFTOVER = re.compile(r"\.(.+)\.([0-9a-f]{6})[0-9a-f]{2}\.tmp")


@dataclass(frozen=True)
class InnerPath(os.PathLike[str]):
    """A path below a folder that the user named: whatever lies there may come from a stranger.

    Every operation goes step by step through the folder's own handle. A link on the way is refused
    in one sentence, so that nothing outside is read as ours, written or removed.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     note = InnerPath(folder) / "a" / "note.txt"
    ...     note.parent.make()
    ...     note.write(b"whole")
    ...     note.parent.names(), note.read()
    (['note.txt'], b'whole')
    """

    #: May be a link itself, for the user named it.
    root: str | os.PathLike[str]
    parts: tuple[str, ...] = ()

    @classmethod
    def of(cls, path: str | os.PathLike[str]) -> InnerPath:
        """The path itself where it is one; else a folder, or file, that the user named."""
        return path if isinstance(path, InnerPath) else cls(path)

    @classmethod
    def file(cls, path: str | os.PathLike[str]) -> InnerPath:
        """A file in a folder that the user named."""
        plain = Path(path)
        return path if isinstance(path, InnerPath) else cls(plain.parent, (plain.name,))

    def __truediv__(self, name: str) -> InnerPath:
        return InnerPath(self.root, (*self.parts, name))

    def __fspath__(self) -> str:
        return str(Path(self.root, *self.parts))

    __str__ = __fspath__

    @property
    def parent(self) -> InnerPath:
        """The folder that it lies in."""
        return InnerPath(self.root, self.parts[:-1])

    @property
    def name(self) -> str:
        """Its last part."""
        return Path(self).name

    @contextlib.contextmanager
    def _handle(self) -> Iterator[int | None]:
        """This folder, opened; None where the system has no handles of folders (Windows)."""
        if not _BY_HANDLE:
            for depth in range(1, len(self.parts) + 1):
                if Path(InnerPath(self.root, self.parts[:depth])).is_symlink():
                    raise self._link(depth)
            yield None
            return
        here = os.open(self.root, _FOLDER)
        try:
            for depth, part in enumerate(self.parts, 1):
                try:
                    inner = os.open(part, _FOLDER | _NO_LINK, dir_fd=here)
                except OSError as error:
                    if _is_link(part, here):
                        raise self._link(depth) from error
                    raise
                os.close(here)
                here = inner
            yield here
        finally:
            os.close(here)

    def _link(self, depth: int) -> RunError:
        return RunError(
            f"{InnerPath(self.root, self.parts[:depth])} is a link, and nothing in a folder of "
            "headcount is reached through one; put what it points to there, or choose another "
            "folder."
        )

    def _name_in(self, folder: int | None) -> str:
        """How the file is called from its folder; a link is refused."""
        name = str(self) if folder is None else self.parts[-1]
        if _is_link(name, folder):
            raise self._link(len(self.parts))
        return name

    def open(self, flags: int) -> int:
        """A descriptor of the plain file; no link, no pipe and no device."""
        if not self.parts:
            return os.open(self.root, flags, 0o666)
        with self.parent._handle() as folder:
            wait_for_nobody = getattr(os, "O_NONBLOCK", 0)  # a pipe would wait for its other end
            name = self._name_in(folder)
            opened = os.open(name, flags | _NO_LINK | wait_for_nobody, 0o666, dir_fd=folder)
        if not stat.S_ISREG(os.fstat(opened).st_mode):
            os.close(opened)
            raise RunError(f"{self} is not a plain file; remove it, or choose another folder.")
        return opened

    def read(self) -> bytes:
        """All that the file holds."""
        with os.fdopen(self.open(os.O_RDONLY), "rb") as file:
            return file.read()

    def exists(self) -> bool:
        """Whether something is there; a link is refused."""
        return self._mode() != 0

    def is_folder(self) -> bool:
        """Whether a folder is there; a link is refused."""
        return stat.S_ISDIR(self._mode())

    def _mode(self) -> int:
        if not self.parts:
            return Path(self.root).stat().st_mode if Path(self.root).exists() else 0
        try:
            with self.parent._handle() as folder:
                return os.stat(self._name_in(folder), dir_fd=folder).st_mode
        except (FileNotFoundError, NotADirectoryError):
            return 0

    def make(self) -> None:
        """Make the folder, and those above it; one that is there is kept."""
        if not self.parts:
            Path(self.root).mkdir(parents=True, exist_ok=True)
            return
        self.parent.make()
        with self.parent._handle() as folder:
            try:
                os.mkdir(self._name_in(folder), dir_fd=folder)
            except FileExistsError:
                if not self.is_folder():
                    raise

    def names(self) -> list[str]:
        """What lies in the folder, in order; nothing where there is none."""
        try:
            with self._handle() as folder:
                return sorted(os.listdir(self if folder is None else folder))  # noqa: PTH208
        except (FileNotFoundError, NotADirectoryError):
            return []

    def write(self, data: bytes, *, tidy: bool = True) -> None:
        """Put data there in one step (`write_bytes`)."""
        mark = f"{os.getpid() & 0xFFFFFF:06x}{secrets.token_hex(1)}"
        draft = self.parent / f".{self.name}.{mark}.tmp"
        try:
            with self.parent._handle() as folder:
                self._check_replaced(folder)
                descriptor = draft.open(os.O_WRONLY | os.O_CREAT | os.O_EXCL)
                try:
                    write_all(descriptor, data)
                    os.fsync(descriptor)
                finally:
                    os.close(descriptor)
                draft.rename(self.name)
                if tidy:
                    self._drop_leftovers()
                if folder is not None:
                    os.fsync(folder)  # the new name itself survives a power cut
        except OSError as error:
            there = self.exists()
            left = "The file that was there is untouched" if there else "Nothing was left behind"
            raise RunError(
                f"{self} could not be written: {reason(error)}. {left}; "
                "free some room or choose another folder."
            ) from error
        finally:
            # After the renaming there is no draft; after anything else, Ctrl-C included, maybe.
            with contextlib.suppress(OSError):
                draft.remove()

    def _check_replaced(self, folder: int | None) -> None:
        """Refuse to put a file in the place of a pipe or a device, such as /dev/stdout's."""
        name = str(self) if folder is None else self.parts[-1]
        with contextlib.suppress(FileNotFoundError):
            if not stat.S_ISREG(os.stat(name, dir_fd=folder).st_mode):
                raise RunError(f"{self} is not a plain file; remove it, or choose another place.")

    def rename(self, name: str) -> None:
        """Give the file another name in its folder, in the place of what has it."""
        with self.parent._handle() as folder:
            new = name if folder is not None else str(self.parent / name)
            os.replace(self._name_in(folder), new, src_dir_fd=folder, dst_dir_fd=folder)

    def remove(self) -> None:
        """Remove the file, or the folder if it is empty; nothing is done where there is none."""
        folder_too = self.is_folder()
        with contextlib.suppress(FileNotFoundError), self.parent._handle() as folder:
            (os.rmdir if folder_too else os.unlink)(self._name_in(folder), dir_fd=folder)

    def remove_all(self, ours: re.Pattern[str] = _KEPT) -> None:
        """Remove files of these names, and the folders below that are left empty; no others.

        By default what work under way keeps: journals, shards, states of training.
        """
        for name in self.names():
            inner = self / name
            if inner.is_folder():
                inner.remove_all(ours)
            elif ours.fullmatch(name) or is_leftover(name):
                inner.remove()
        if self.is_folder() and not self.names():
            self.remove()

    def _drop_leftovers(self) -> None:
        """Remove drafts of this file whose process is gone: it was killed while it wrote."""
        if os.name != "posix":
            return
        for name in self.parent.names():
            found = _LEFTOVER.fullmatch(name)
            if found is not None and found[1] == self.name:
                try:
                    os.kill(int(found[2], 16), 0)
                except ProcessLookupError:
                    (self.parent / name).remove()
                except OSError:  # somebody else's, and alive
                    continue


def _is_link(name: str, folder: int | None) -> bool:
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except OSError:
        return False
    return stat.S_ISLNK(found.st_mode)


# --- Write a file whole or not at all -----------------------------------------------------------


def write_bytes(path: str | os.PathLike[str], data: bytes, *, tidy: bool = True) -> None:
    """Put data at path in one step; whatever happens on the way, the old file stays whole.

    `tidy` also removes drafts of this file that killed processes left: for folders with few files,
    since it reads their names.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_bytes(Path(folder, "note.txt"), b"whole")
    ...     Path(folder, "note.txt").read_text()
    'whole'
    """
    InnerPath.file(path).write(data, tidy=tidy)


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


# --- Put a folder in the place of another ------------------------------------------------------

#: Linux: renameat2(..., RENAME_EXCHANGE), names from the folder of the process.
_HERE, _EXCHANGE = -100, 2


def replace_folder(draft: Path, place: Path) -> None:
    """Give a finished folder its name; one that was there is deleted.

    The two change names in one step where the system can; else a process that is killed between two
    steps leaves the old one aside, and `recover` brings it back.
    """
    old = draft
    if not (place.exists() and _exchanged(draft, place)):
        old = draft.with_suffix(".old")
        try:
            if place.exists():
                place.rename(old)
            draft.rename(place)
        except BaseException:
            recover(place)
            raise
    sync_folder(place.parent)
    with contextlib.suppress(OSError):  # the name of a folder elsewhere: the link goes, it stays
        old.unlink() if old.is_symlink() else shutil.rmtree(old)


def _exchanged(one: Path, other: Path) -> bool:
    """Let two paths change names in one step; False where the system cannot."""
    change = getattr(ctypes.CDLL(None), "renameat2", None) if sys.platform == "linux" else None
    names = (os.fsencode(one.absolute()), os.fsencode(other.absolute()))
    return change is not None and change(_HERE, names[0], _HERE, names[1], _EXCHANGE) == 0


def recover(place: Path) -> None:
    """Give back its name to a folder that a killed process had moved aside and not replaced."""
    if not place.exists():
        aside = list(place.parent.glob(f".{glob.escape(place.name)}.????????.old"))
        if aside:
            max(aside, key=lambda path: path.stat().st_mtime).rename(place)


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
