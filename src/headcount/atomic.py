"""Write a file whole or not at all: a reader sees the old file or the new one, never a part."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
from pathlib import Path

from headcount.errors import RunError

__all__ = ["is_leftover", "reason", "sync_folder", "write_all", "write_bytes"]

_LEFTOVER = re.compile(r"\..+\.[0-9a-f]{8}\.tmp")


def write_bytes(path: str | Path, data: bytes) -> None:
    """Put data at path in one step; whatever happens on the way, the old file stays whole.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_bytes(Path(folder, "note.txt"), b"whole")
    ...     Path(folder, "note.txt").read_text()
    'whole'
    """
    path = Path(path)
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        _write_draft(draft, data)
        os.replace(draft, path)  # noqa: PTH105 - the call whose promise this module is about
        sync_folder(path.parent)
    except OSError as error:
        raise RunError(f"{path} could not be written: {reason(error)}. {_kept(path)}") from error
    finally:
        # After os.replace there is no draft; after anything else, Ctrl-C included, there may be.
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)


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


def _write_draft(draft: Path, data: bytes) -> None:
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        write_all(descriptor, data)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_folder(folder: Path) -> None:
    """Make the new name itself survive a power cut (POSIX; elsewhere folders cannot be synced)."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _kept(path: Path) -> str:
    if path.exists():
        return "The file that was there is untouched; free some room or choose another folder."
    return "Nothing was left behind; free some room or choose another folder."
