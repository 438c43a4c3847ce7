"""run.json: what a run directory says about itself, and which folders are one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from headcount.atomic import is_leftover, reason
from headcount.errors import RunError
from headcount.exact_json import decode
from headcount.lock import LOCK_FILE
from headcount.parquet import check_schema
from headcount.provenance import now, version
from headcount.table import SCHEMA

__all__ = ["RECORD", "TABLE", "check_place", "fresh_record", "read_record"]

RECORD = "run.json"
TABLE = "heads.parquet"


def fresh_record() -> dict[str, Any]:
    """The record of a run in which nothing was done yet."""
    return {
        "schema": SCHEMA,
        "headcount": version(),
        "created": now(),
        "provenance": {},
        "columns": [],
        "stages": {},
        "notes": [],
    }


def read_record(path: Path) -> dict[str, Any] | None:
    """run.json, checked; None where there is none."""
    file = path / RECORD
    try:
        record = decode(file.read_bytes())
    except FileNotFoundError:
        return None
    except OSError as error:
        raise RunError(f"{file} cannot be read: {reason(error)}.") from error
    except (ValueError, RecursionError) as error:
        raise RunError(_damaged(file, str(error))) from error
    if not isinstance(record, dict) or "schema" not in record:
        raise RunError(_damaged(file, "it has no schema"))
    check_schema(record, f"{path}/")
    for key, empty in fresh_record().items():
        if not isinstance(record.setdefault(key, empty), type(empty)):
            raise RunError(_damaged(file, f"'{key}' is not a {type(empty).__name__}"))
    return record


def _damaged(file: Path, why: str) -> str:
    return (
        f"{file} is cut off or damaged ({why}); restore it or choose another folder. "
        f"The table beside it can still be read with HeadTable.load('{file.with_name(TABLE)}')."
    )


def check_place(path: Path, create: bool) -> None:
    """Refuse a place where a run can be neither found nor made, before anything is touched."""
    if path.exists() and not path.is_dir():
        raise RunError(f"{path} is a file, not a folder; choose another folder for the run.")
    if not create and not path.exists():
        raise RunError(f"There is no folder {path}; check its name, or make the run first.")
    if path.is_dir() and read_record(path) is None:
        _check_no_strangers(path, create)


def _check_no_strangers(path: Path, create: bool) -> None:
    """A folder without run.json may be used when it is empty, and read never."""
    names = sorted(file.name for file in path.iterdir())
    strangers = [name for name in names if name != LOCK_FILE and not is_leftover(name)]
    if strangers:
        shown = ", ".join(strangers[:3]) + (", ..." if len(strangers) > 3 else "")
        raise RunError(
            f"{path}/ is not a run directory: it holds {shown} and no run.json. "
            "Choose an empty or a new folder."
        )
    if not create:
        raise RunError(f"{path}/ is empty, so there is no run in it; make the run first.")
