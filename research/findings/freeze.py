"""When each bound was written, and on which figures it was first used.

`python -m research.findings --freeze "reason"` records, for each finding, its bound, the commit
that wrote it and the hashes of its data. `python -m research.findings` and the tests refuse a bound
or data that differ from the record. A bound that is newer than its data is listed with the reason.
"""

from __future__ import annotations

import hashlib
import json
import math
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from headcount.errors import InputError
from research import ROOT

from .rule import FROZEN, Finding, place

RECORD = FROZEN / "record.json"


def files(name: str) -> list[Path]:
    """The files that a name of data stands for."""
    path = place(name)
    return sorted(path.rglob("*.json")) if path.is_dir() else [path]


def data_hash(names: Iterable[str]) -> str:
    """One hash over all data of a finding."""
    parts = [hashlib.sha256(path.read_bytes()).hexdigest() for n in names for path in files(n)]
    return hashlib.sha256("".join(parts).encode()).hexdigest()[:16]


def record() -> dict[str, Any]:
    """The record as it stands."""
    return json.loads(RECORD.read_text("utf8")) if RECORD.exists() else {}


def faults(findings: Iterable[Finding]) -> list[str]:
    """What differs from the record, a sentence each."""
    rows, sentences = record(), []
    for finding in findings:
        row = rows.get(finding.id)
        if row is None:
            sentences.append(f"{finding.id} is not in the record")
        elif row["bound"] != _plain(finding.bound):
            sentences.append(
                f"{finding.id} has the bound {finding.bound:g}, the record {row['bound']}"
            )
        elif row["data"] != data_hash(finding.data):
            sentences.append(f"{finding.id} has other data than the record")
        elif row["written"]["date"] > row["measured"]["date"] and not row.get("changed"):
            sentences.append(f"{finding.id} has a bound newer than its data, and no reason")
    return sentences


def freeze(findings: Iterable[Finding], reason: str) -> int:
    """Record bounds and data as they are now; how many bounds changed."""
    rows, changes = record(), 0
    head = _commit("-1", "HEAD")
    for finding in findings:
        before = rows.get(finding.id)
        new = before is None or before["bound"] != _plain(finding.bound)
        hashed = data_hash(finding.data)
        if not new and before["data"] == hashed:
            continue
        if new and _git("status", "--porcelain", "--", str(FROZEN / "*.toml")):
            raise InputError(
                "A bound of research/findings/frozen is not committed; commit it first."
            )
        dates = [_first(path) for name in finding.data for path in files(name)]
        row = {
            "bound": _plain(finding.bound),
            "written": head if new else before["written"],
            "data": hashed,
            "measured": max(dates, key=lambda one: one["date"]) if dates else head,
        }
        if new and row["written"]["date"] > row["measured"]["date"]:
            if not reason:
                raise InputError(
                    f"The bound of {finding.id} is newer than its data; give --freeze the reason."
                )
            row["changed"] = reason
            changes += 1
        elif not new and "changed" in before:
            row["changed"] = before["changed"]
        rows[finding.id] = row
    RECORD.write_text(json.dumps(rows, indent=1, sort_keys=True) + "\n", "utf8")
    return changes


def _plain(bound: float) -> float | None:
    return None if math.isnan(bound) else bound


def _first(path: Path) -> dict[str, str]:
    """The commit that brought a file as it is now, under any name."""
    blob = _git("hash-object", str(path))
    return _commit(f"--find-object={blob}", "HEAD", last=True)


def _commit(*options: str, last: bool = False) -> dict[str, str]:
    lines = _git("log", "--format=%h %cI", *options).splitlines()
    if not lines:
        raise InputError("A file of the findings' data is not committed; commit it first.")
    commit, date = (lines[-1] if last else lines[0]).split()
    return {"commit": commit, "date": date}


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.strip()
