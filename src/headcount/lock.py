"""The right to write in one folder, held by one process at a time."""

from __future__ import annotations

import contextlib
import errno
import os
import threading
import weakref
from dataclasses import dataclass
from pathlib import Path

from headcount.atomic import reason
from headcount.errors import RunError

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows: no kernel lock, so nobody is kept out
    fcntl = None  # type: ignore[assignment]

__all__ = ["LOCK_FILE", "Lock", "try_lock"]

LOCK_FILE = ".lock"

#: File systems that know no locks answer with one of these; then nobody is kept out.
_NO_LOCKS = (errno.ENOSYS, errno.ENOTSUP, errno.ENOLCK)


@dataclass
class _Holding:
    """One kernel lock of this process, and how many `Lock`s share it."""

    descriptor: int
    owner: int
    count: int = 0


_held: dict[Path, _Holding] = {}
_guard = threading.Lock()


class Lock:
    """A folder's lock. The kernel lets go of it when the process ends, however it ends.

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
        key = self.folder.resolve() / LOCK_FILE
        with _guard:
            holding = _held.get(key)
            is_new = holding is None or holding.owner != os.getpid()
            if holding is None or is_new:
                holding = _held[key] = _Holding(_take(key, self.folder), os.getpid())
            holding.count += 1
        self._release = weakref.finalize(self, _let_go, key, holding)
        return is_new

    def release(self) -> None:
        """Give the lock back; without a lock this does nothing."""
        if self._release is not None:
            self._release()


def try_lock(descriptor: int) -> bool:
    """Lock an open file without waiting; False when somebody else has it."""
    if fcntl is None:  # pragma: no cover
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
            return False
        if error.errno not in _NO_LOCKS:
            raise
    return True


def _take(path: Path, folder: Path) -> int:
    """Open and lock the lock file, and write our process id into it."""
    while True:
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            raise RunError(
                f"{folder}/ cannot be written to: {reason(error)}. Choose another folder."
            ) from error
        if not try_lock(descriptor):
            raise _busy(descriptor, folder)
        if _is_still_there(descriptor, path):
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, str(os.getpid()).encode(), 0)
            return descriptor
        os.close(descriptor)


def _busy(descriptor: int, folder: Path) -> RunError:
    """Who has it, as far as the lock file tells."""
    holder = os.pread(descriptor, 20, 0).decode("ascii", "replace").strip()
    os.close(descriptor)
    whom = f"process {holder}" if holder.isdigit() else "another process"
    return RunError(
        f"{folder}/ is being written by {whom}; wait until it has ended, or choose another folder."
    )


def _is_still_there(descriptor: int, path: Path) -> bool:
    """Whether the file we locked is the one at path: its last holder may have just removed it."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def _let_go(path: Path, holding: _Holding) -> None:
    """Drop one share; the last one removes the file and closes it, which unlocks it."""
    if holding.owner != os.getpid():
        return  # a forked child: the lock is its parent's
    with _guard:
        holding.count -= 1
        if holding.count:
            return
        _held.pop(path, None)
        with contextlib.suppress(OSError):
            path.unlink()
        os.close(holding.descriptor)
