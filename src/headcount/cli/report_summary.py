"""What `headcount report` says at its end: in a few lines, or as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headcount.cli.output import output

if TYPE_CHECKING:
    from headcount.report.report import Report
    from headcount.story import Told

__all__ = ["print_summary", "summary"]


def summary(run: Path, page: Report, told: Sequence[Told], exhibits: bool) -> dict[str, Any]:
    """The page, the run, and what the page is about."""
    from headcount.report.source import read_source

    source = read_source(run, exhibits=exhibits)
    roles = source.frame("roles")
    own = sum(one.own_text for one in source.exhibits)
    return {
        "report": str(page.path),
        "bytes": page.bytes,
        "run": str(run),
        "model": source.model,
        "heads": len(source.table),
        "columns": source.table.names,
        "with_role": 0 if roles is None else _heads_with_role(roles),
        "roles": {} if roles is None else _heads_by_role(roles),
        "exhibits": len(source.exhibits),
        "own_text": bool(own),
        "stages": [one.to_dict() for one in told],
    }


def print_summary(found: dict[str, Any]) -> None:
    """For people."""
    if found["roles"]:
        told = f"{found['with_role']} of {found['heads']} heads of {found['model']} have a role:"
        counts = ", ".join(f"{n} {role}" for role, n in found["roles"].items())
        several = sum(found["roles"].values()) > found["with_role"]
        output().print(f"{told} {counts}{' (some have several)' if several else ''}.")
    output().print(f"Wrote {found['report']} ({found['bytes'] / 1e6:.2f} MB) from {found['run']}/.")
    if found["own_text"]:
        output().print(
            "The page contains sentences of your texts; --no-exhibits leaves them out.", style="dim"
        )


def _heads_with_role(roles: Any) -> int:
    return len(roles[["stack", "layer", "head"]].drop_duplicates())


def _heads_by_role(roles: Any) -> dict[str, int]:
    """How many heads have each role; a head with two verdicts of one role counts once."""
    once = roles[["stack", "layer", "head", "role"]].drop_duplicates()
    return dict(Counter(once["role"]).most_common())
