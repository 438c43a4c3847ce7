"""A survey into a run directory: opened before the work, written after it."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from headcount.errors import UsageError

if TYPE_CHECKING:
    from headcount.run import Run, Stage
    from headcount.subject import Subject
    from headcount.table import HeadTable

__all__ = ["check_run", "opened", "write"]


def opened(out: Path | None) -> AbstractContextManager[Run | None]:
    """The run directory, made and locked before the work: a bad place is told at once."""
    if out is None:
        return nullcontext()
    from headcount.run import Run

    return Run.open(out)


def check_run(run: Run, subject: Subject, stacks: list[str] | None) -> None:
    """Refuse, before the work, a run of another model or one that would lose what it knows."""
    from headcount.table import HeadTable

    run.check_subject(HeadTable.of(subject.heads, {}, provenance={"weights": subject.weights_hash}))
    others = [stack for stack in subject.anatomy.stacks if stacks and stack not in stacks]
    if others and run.has_table and "survey" in run.stages:
        raise UsageError(
            f"{run.path}/ has a survey already, and one of {', '.join(stacks or ())} alone would "
            f"clear {', '.join(others)}; leave out --stacks, choose another folder, or --replace."
        )


def write(stage: Stage, table: HeadTable, replace: bool) -> list[str]:
    """Put the table into the run: beside the columns of this model that are there, or anew.

    Returns what to tell of columns that came from other texts.
    """
    run = stage.run
    old = run.read_table() if run.has_table and not replace else None
    run.write_table(table if old is None else old.join(table, replace=True), replace=replace)
    about = table.provenance
    settings = {"convention": about["convention"], "columns": table.names, **about["settings"]}
    stage.finish(settings, about, notes=about["remarks"])
    return [] if old is None else _other_texts(old, table, run.path)


def _other_texts(old: HeadTable, new: HeadTable, path: Path) -> list[str]:
    """Which columns were replaced, and which are kept, though measured on other texts."""
    origins = {name: old.origins.get(name, old.provenance) for name in old.names}
    others = [name for name in old.names if origins[name].get("data") != new.provenance["data"]]
    told = []
    for deed, names in (
        ("replaces", [name for name in others if name in new.names]),
        ("stands beside", [name for name in others if name not in new.names]),
    ):
        if names:
            corpora = ", ".join(sorted({str(origins[name].get("corpus")) for name in names}))
            told.append(f"In {path}/ this {deed} {', '.join(names)}, measured on {corpora}.")
    return told
