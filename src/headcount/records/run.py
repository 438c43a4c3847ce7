"""The run directory: everything that is known about one model, in files that are always whole.

::

    run/
      run.json           schema, version, provenance, columns, stages done, notes
      heads.parquet      one row per head: stack, layer, head, statistics, <name>_low, <name>_high
      relations.parquet  roles.parquet  curve.parquet  agreement.parquet     frames that stages add
      pairs.npz          head-to-head distances
      exhibits/          a few sentences with their maps
      journal.jsonl      units of a sweep under way
      shards/            parts of a corpus that a survey under way is done with

Files are replaced in one step, one process writes at a time, anybody may read meanwhile.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from headcount.errors import RunError, UsageError
from headcount.records import parquet
from headcount.records.files import InnerPath, is_leftover, json_decode, json_encode, reason
from headcount.records.journal import LOCK_FILE, Journal, Lock
from headcount.records.provenance import now, version
from headcount.records.rendering import Brief
from headcount.records.table import INDEX, SCHEMA, HeadTable

# --- run.json -----------------------------------------------------------------------------------

RECORD = "run.json"
TABLE = "heads.parquet"
SHARDS = "shards"


def fresh_record() -> dict[str, Any]:
    """The record of a run in which nothing was done yet."""
    return {
        "schema": SCHEMA,
        "headcount": version(),
        "created": now(),
        "provenance": {},
        "columns": [],
        "stages": {},
        "files": [],
        "notes": [],
    }


def read_record(path: Path) -> dict[str, Any] | None:
    """run.json, checked; None where there is none."""
    file = InnerPath(path) / RECORD
    try:
        record = json_decode(file.read())
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise RunError(f"{file} cannot be read: {reason(error)}.") from error
    except (ValueError, RecursionError) as error:
        raise RunError(_damaged(file, str(error))) from error
    if not isinstance(record, dict) or "schema" not in record:
        raise RunError(_damaged(file, "it has no schema"))
    parquet.check_schema(record, f"{path}/")
    if "files" not in record:  # written before files were listed
        written = (".parquet", ".npz", ".jsonl")
        names = [one.name for one in path.iterdir() if one.suffix in written]
        record["files"] = [*names, "exhibits"]
    for key, empty in fresh_record().items():
        record.setdefault(key, empty)
    kinds = fresh_record() | {"details": [], "column_notes": {}, "origins": {}}
    for key, empty in kinds.items():
        if not isinstance(record.get(key, empty), type(empty)):
            raise RunError(_damaged(file, f"'{key}' is not a {type(empty).__name__}"))
    return record


def _damaged(file: InnerPath, why: str) -> str:
    return (
        f"{file} is cut off or damaged ({why}); restore it or choose another folder. "
        f"The table beside it can still be read with HeadTable.load('{file.parent / TABLE}')."
    )


def check_place(path: Path, create: bool) -> None:
    """Refuse a place where a run can be neither found nor made, before anything is touched."""
    if path.exists() and not path.is_dir():
        raise RunError(f"{path} is a file, not a folder; choose another folder for the run.")
    if not path.exists():
        if not create:
            raise RunError(f"There is no folder {path}; check its name, or make the run first.")
        return
    if read_record(path) is not None:
        return
    names = sorted(file.name for file in path.iterdir())
    strangers = [n for n in names if n not in (LOCK_FILE, SHARDS) and not is_leftover(n)]
    if strangers:
        shown = ", ".join(strangers[:3]) + (", ..." if len(strangers) > 3 else "")
        raise RunError(
            f"{path}/ is not a run directory: it holds {shown} and no run.json. "
            "Choose an empty or a new folder."
        )
    if not create:
        raise RunError(f"{path}/ is empty, so there is no run in it; make the run first.")


# --- The run directory --------------------------------------------------------------------------

#: Frames whose columns are promised; more columns and other frames may come with later work.
FRAMES: dict[str, tuple[str, ...]] = {
    "relations": (
        *(*INDEX, "relation", "direction", "split", "n", "accuracy", "low", "high"),
        *("baseline", "offset", "p", "p_adjusted"),
    ),
    "roles": (
        *(*INDEX, "role", "label", "value", "low", "high", "n"),
        *("baseline", "control", "p", "p_adjusted", "evidence"),
    ),
}

#: Of the threads of this process one at a time reads run.json, changes it and puts it back.
_CHANGING = threading.RLock()

_NAME = re.compile(r"[a-z][a-z0-9_-]*")
#: What run.json may list: a file, a folder, or a file in a folder.
_FILE = re.compile(rf"{_NAME.pattern}(\.(parquet|npz|jsonl)|/[a-z0-9][a-z0-9._-]*)?")
#: What folders of earlier versions hold, which listed no files of theirs.
_INSIDE = re.compile(r"(index|probe)\.json|probe\.safetensors")


class Run(Brief):
    """One run directory. Close it, or use it in a ``with`` block, to let others write.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with Run.open(Path(folder, "run")) as run:
    ...         run.stage("survey").finish({"convention": "headcount"})
    ...     Run.open(Path(folder, "run"), create=False).stage("survey").done
    True
    """

    def __init__(self, path: Path) -> None:
        """Use `Run.open`."""
        self.path = path
        #: The folder, below which nothing is reached through a link.
        self.inner = InnerPath(path)
        self._lock = Lock(path)
        self._made: list[Path] = []

    @classmethod
    def open(cls, path: str | Path, create: bool = True) -> Run:
        """Open a run to write in it, and make it where there is none; other writers are refused.

        With ``create=False`` the run must be there, and it is locked by the first write only.
        """
        run = cls(Path(path))
        check_place(run.path, create)
        if create:
            try:
                missing = [one for one in (run.path, *run.path.parents) if not one.exists()]
                for folder in reversed(missing):
                    try:
                        folder.mkdir()
                    except OSError as error:
                        raise RunError(
                            f"{run.path}/ cannot be made: {reason(error)}. Choose another folder."
                        ) from error
                    run._made.append(folder)
                run.lock()
                if run.record.get("clearing"):
                    run.clear()
            except BaseException:
                run.close()
                raise
        return run

    def lock(self) -> None:
        """Keep other processes from writing until `close`; every write does this by itself."""
        if self._lock.acquire():
            for file in self.path.rglob(".*.tmp"):
                if is_leftover(file.name):  # nobody else writes now, so its writer is dead
                    file.unlink(missing_ok=True)

    def close(self) -> None:
        """Let others write; a folder made for this run that stayed empty is removed."""
        self._lock.release()
        for folder in reversed(self._made):
            if any(folder.iterdir()):
                break
            folder.rmdir()
        self._made = []

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def in_brief(self) -> tuple[str, pd.DataFrame]:
        """Its stages, and since when each is done."""
        done = {n: {"done": s.get("time"), "s": s.get("seconds")} for n, s in self.stages.items()}
        words = f"Run('{self.path}', stages: {', '.join(done) or 'none'})"
        return words, pd.DataFrame.from_dict(done, orient="index")

    @property
    def record(self) -> dict[str, Any]:
        """What run.json says now; an empty record where nothing was written yet."""
        return read_record(self.path) or fresh_record()

    @property
    def provenance(self) -> dict[str, Any]:
        """The provenance of the run's table."""
        return dict(self.record["provenance"])

    @property
    def stages(self) -> dict[str, dict[str, Any]]:
        """The stages done: name to settings, provenance, time and notes."""
        return dict(self.record["stages"])

    @property
    def notes(self) -> list[str]:
        """Remarks about the run as a whole."""
        return list(self.record["notes"])

    def note(self, text: str) -> None:
        """Add a remark, once."""
        if text not in self.notes:
            self._change(lambda record: record["notes"].append(text))

    def stage(self, name: str) -> Stage:
        """A step of the work: whether it is done, and to mark it done."""
        return Stage(self, _checked(name, "stage"))

    @property
    def has_table(self) -> bool:
        """Whether there is a head table."""
        return (self.inner / TABLE).exists()

    def write_table(self, table: HeadTable, *, replace: bool = False) -> None:
        """Write the head table, with its descriptions here and in run.json, and its details.

        A run is about one model: a table of other heads or other weights is refused. With
        `replace` it takes the old one's place, and all that was known about the old model goes.
        """
        self.lock()
        if not replace:
            self.check_subject(table)
        elif self._other_subject(table):
            self._forget()
        for name, detail in table.details.items():
            self.write_frame(name, detail)
        self._put(TABLE, parquet.table_bytes(table))
        about = parquet.about_table(table)
        about.pop("schema")
        about["column_notes"] = about.pop("notes")  # the notes of run.json are about the run
        self._change(lambda record: record.update(about))

    def check_subject(self, table: HeadTable) -> None:
        """Refuse a table of other heads or other weights than the run's: before long work, too."""
        if other := self._other_subject(table):
            raise RunError(
                f"{self.path}/ holds {other}; choose another folder, or pass replace=True "
                "(--replace)."
            )

    def _other_subject(self, new: HeadTable) -> str:
        """How the run's table is about other heads or other weights; empty where it is not."""
        if not self.has_table:
            return ""
        old = self.read_table()
        if old.heads != new.heads:
            return f"a table of {len(old)} heads, and this one has {len(new)} that are not the same"
        was, is_now = old.provenance.get("weights"), new.provenance.get("weights")
        if was and is_now and was != is_now:
            short = [digest.rpartition(":")[2][:12] for digest in (was, is_now)]
            model = old.provenance.get("model", "another model")
            return f"a table of {model} (weights {short[0]}), and this one has {short[1]}"
        return ""

    def read_table(self) -> HeadTable:
        """Read the head table, and the finer tables that were written with it."""
        record = self.record
        about = {**record, "notes": record.get("column_notes", {})}
        table = parquet.read_table(self.inner / TABLE, about)
        finer = [name for name in record.get("details", []) if name in self.frames]
        table.details = {name: self.read_frame(name) for name in finer}
        return table

    @property
    def frames(self) -> list[str]:
        """The names of the frames that are there, besides the table."""
        names = (name for name in self.inner.names() if name != TABLE)
        return [name[:-8] for name in names if name.endswith(".parquet")]

    def write_frame(self, name: str, frame: pd.DataFrame) -> None:
        """Write a frame such as ``relations``, ``curve`` or ``agreement``."""
        _checked(name, "frame")
        if name == "heads":
            raise UsageError("'heads' is the head table; write it with write_table().")
        lacking = [one for one in FRAMES.get(name, ()) if one not in [*frame, *frame.index.names]]
        if lacking:
            raise UsageError(
                f"Frame '{name}' lacks {', '.join(lacking)}; "
                f"it must have {', '.join(FRAMES[name])}."
            )
        self._put(f"{name}.parquet", parquet.frame_bytes(frame))

    def read_frame(self, name: str) -> pd.DataFrame:
        """Read a frame."""
        if name not in self.frames:
            has = ", ".join(self.frames) or "no frames yet"
            raise RunError(
                f"{self.path}/ has no {name}.parquet (it has {has}); "
                "run the stage that makes it first."
            )
        return parquet.read_frame(self.inner / f"{name}.parquet")

    def write_arrays(self, name: str, arrays: Mapping[str, np.ndarray]) -> None:
        """Write arrays such as ``pairs``; no Python objects, since they would need pickle."""
        self._put(f"{_checked(name, 'array file')}.npz", parquet.npz_bytes(arrays))

    def read_arrays(self, name: str) -> dict[str, np.ndarray]:
        """Read arrays."""
        try:
            return parquet.read_npz(self.inner / f"{name}.npz")
        except FileNotFoundError as error:
            raise RunError(
                f"{self.path}/ has no {name}.npz; run the stage that makes it first."
            ) from error

    def folder(self, name: str = "exhibits", files: Sequence[str] = ()) -> InnerPath:
        """A folder inside the run, made where there is none; `files` are what will be in it."""
        path = self._claim(_checked(name, "folder"), *(f"{name}/{file}" for file in files))
        try:
            path.make()
        except OSError as error:
            raise RunError(f"{path} cannot be made: {reason(error)}.") from error
        return path

    def keep_only(self, folder: str, files: Sequence[str]) -> None:
        """Remove what was listed in a folder and is not of these files; nothing else."""
        kept = {f"{folder}/{file}" for file in files}
        listed = [one for one in self._listed() if one.startswith(f"{folder}/")]
        if stale := [one for one in listed if one not in kept]:
            self._remove(stale)
            names = [one for one in self.record["files"] if one not in stale]
            self._change(lambda record: record.update(files=names))

    def journal(self, fingerprint: Mapping[str, Any], name: str = "journal") -> Journal:
        """The journal of a sweep: begun here, or gone on with when the fingerprint is the same.

        One that had ended (`end_journal`) is taken up again by the same work of the same version.
        """
        path = self._claim(f"{_checked(name, 'journal')}.jsonl")
        ended = self.inner / f"{name}-ended.jsonl"
        if not path.exists() and ended.exists() and Journal.is_of(ended, fingerprint):
            ended.rename(path.name)
        return Journal.open(path, fingerprint)

    def end_journal(self, name: str = "journal") -> None:
        """Put a journal aside whose work has ended: only the same work uses it again."""
        path = self.inner / f"{_checked(name, 'journal')}.jsonl"
        if path.exists():
            path.rename(self._claim(f"{name}-ended.jsonl").name)

    def drop_journal(self, name: str = "journal") -> None:
        """Remove a journal whose results are all in the table, so that another sweep can begin."""
        self.lock()
        (self.inner / f"{_checked(name, 'journal')}.jsonl").remove()

    def shards(self, of: str) -> InnerPath:
        """Where a survey or a probe keeps what it is done with while it is under way."""
        return self.inner / SHARDS / of

    def drop_shards(self, of: str) -> None:
        """Remove what was kept: all of it is in the table, or another one begins."""
        self.lock()
        self.shards(of).remove_all()
        if not self.shards(of).parent.names():  # somebody else's may still be there
            self.shards(of).parent.remove()

    def clear(self) -> None:
        """Start anew: remove everything written through this class; keep other files.

        Broken off, it is brought to its end when the run is opened again.
        """
        self._change(lambda record: record.update(clearing=True))
        self._forget()
        (self.inner / TABLE).remove()
        self._change(lambda record: record.pop("clearing"))

    def _forget(self) -> None:
        """Clear what stages found out about another model: the files that they wrote."""
        self.lock()
        names = [name for name in self._listed() if name != TABLE]
        self._change(lambda record: record.update(stages={}, notes=[], details=[], begun={}))
        (self.inner / SHARDS).remove_all()
        self._remove(names)
        self._change(lambda record: record.update(files=[TABLE]))

    def _listed(self) -> list[str]:
        """The files that run.json lists; of one from elsewhere only names that headcount gives."""
        return [str(name) for name in self.record["files"] if _FILE.fullmatch(str(name))]

    def _remove(self, names: Sequence[str]) -> None:
        """Remove files that run.json lists, then folders that are left empty; no others."""
        for name in sorted(names, reverse=True):  # what is in a folder before the folder
            path = InnerPath(self.path, tuple(name.split("/")))
            if path.is_folder():
                path.remove_all(_INSIDE)
            else:
                path.remove()

    def _claim(self, name: str, *more: str) -> InnerPath:
        """The place of a file, listed in run.json before it is written.

        So the list misses nothing, and run.json is the first file: without it, the folder is no
        run.
        """
        self.lock()
        if new := [one for one in (name, *more) if one not in self.record["files"]]:
            self._change(lambda record: record["files"].extend(new))
        return self.inner / name

    def _put(self, name: str, data: bytes) -> None:
        self._claim(name).write(data)

    def _change(self, change: Callable[[dict[str, Any]], Any]) -> None:
        """Read run.json, change it and put it back: two `Run`s of one process stay in step."""
        with _CHANGING:
            self.lock()
            record = self.record
            change(record)
            record.update(schema=SCHEMA, headcount=version(), updated=now())
            (self.inner / RECORD).write(json_encode(record, indent=2).encode() + b"\n")


def writable_run(run: Run | str | Path | None) -> AbstractContextManager[Run | None]:
    """A run to write in, opened and closed here where a path is given; an open one stays open."""
    return nullcontext(run) if run is None or isinstance(run, Run) else Run.open(run)


@dataclass(frozen=True)
class Stage:
    """A step of the work on a run: ``survey``, ``score``, ``prune``, ..."""

    run: Run
    name: str
    _begun: float = field(default_factory=time.monotonic, repr=False, compare=False)

    @property
    def done(self) -> bool:
        """Whether it was marked done, by this version of headcount."""
        return self.record.get("headcount") == version()

    @property
    def record(self) -> dict[str, Any]:
        """Its settings, provenance, times and notes; empty where it was never done."""
        return self.run.stages.get(self.name, {})

    def done_with(self, settings: Mapping[str, Any]) -> bool:
        """Whether it was done with exactly these settings, by this version of headcount."""
        return self.done and json_encode(self.record["settings"], sort_keys=True) == json_encode(
            settings, sort_keys=True
        )

    def begin(self, settings: Mapping[str, Any], share: float = 0.0) -> None:
        """Say that it is under way with these settings: what it leaves half done is its own.

        `share` is how much of it is done and kept; where it was begun before, that stays.
        """
        begun: dict[str, Any] = {"stage": self.name, "settings": dict(settings)}
        if share or (share := self.begun_share(settings)):
            begun["share"] = round(share, 3)
        self.run._change(lambda record: record.update(begun=begun))

    def begun_with(self, settings: Mapping[str, Any]) -> bool:
        """Whether it was the last to begin, with exactly these settings."""
        begun = {"stage": self.name, "settings": dict(settings)}
        last = dict(self.run.record.get("begun") or {})
        last.pop("share", None)
        return json_encode(last, sort_keys=True) == json_encode(begun, sort_keys=True)

    def begun_share(self, settings: Mapping[str, Any]) -> float:
        """How much of it is done and kept, where it was the last to begin with these settings."""
        return self.run.record["begun"].get("share", 0.0) if self.begun_with(settings) else 0.0

    def finish(
        self,
        settings: Mapping[str, Any] | None = None,
        provenance: Mapping[str, Any] | None = None,
        notes: Sequence[str] = (),
    ) -> None:
        """Mark it done, with the time since `Run.stage` was called."""
        entry = {
            "settings": dict(settings or {}),
            "provenance": dict(provenance or {}),
            "headcount": version(),
            "finished": now(),
            "seconds": round(time.monotonic() - self._begun, 3),
            "notes": list(notes),
        }

        def ended(record: dict[str, Any]) -> None:
            record["stages"].update({self.name: entry})
            (record.get("begun") or {}).pop("share", None)

        self.run._change(ended)


def _checked(name: str, what: str) -> str:
    """A name that is one plain file name: no folder of somebody else is ever reached."""
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"'{name}' cannot name a {what}; use small letters, digits, - and _, "
            "starting with a letter."
        )
    return name
