"""What a survey does with a model: passes over corpora, then trials; it ends as one table."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager, nullcontext
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any

from headcount import provenance
from headcount.columns import Column
from headcount.progress import Progress
from headcount.stages.passing import Manner, passed
from headcount.subject import Subject
from headcount.table import HeadTable
from headcount.tallies.tabulate import tabulate
from headcount.tallies.tally import Tally
from headcount.text import Corpus, EncodeReport
from headcount.text.ready import Ready
from headcount.trials.catalogue import run_trials
from headcount.trials.question import Trial

__all__ = ["Pass", "Programme", "Telling"]

#: Opened for each stage with its name and unit; gives what to call with the progress.
Telling = Callable[[str, str], AbstractContextManager[Progress]]


@dataclass(frozen=True)
class Pass:
    """A corpus and the tallies that look at it."""

    #: What is told while it goes on: "Surveying".
    name: str
    source: Corpus | Ready
    tallies: tuple[Tally, ...]
    manner: Manner
    #: The columns that it fills, in the order of the table.
    columns: tuple[Column, ...] = ()
    #: Column to the reason why no tally fills it.
    missing: Mapping[str, str] = field(default_factory=dict)
    #: What the provenance says besides: convention, seed, limit.
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def unit(self) -> str:
        """What the corpus is counted in."""
        return "pairs" if getattr(self.source, "paired", False) else "sentences"

    def run(self, subject: Subject, progress: Progress | None = None) -> HeadTable:
        """Go through the corpus and tabulate."""
        report = passed(subject, self.source, self.tallies, self.manner, progress)
        table = tabulate(subject.anatomy, self.tallies, self.columns, dict(self.missing))
        for tally in self.tallies:
            table.details.update(tally.details())
        _note_left_out(table, self.manner.stacks)
        table.provenance = self._provenance(subject, report)
        return table

    def _provenance(self, subject: Subject, report: EncodeReport) -> dict[str, Any]:
        """Where the numbers come from."""
        about, source = subject.describe(), self.source
        remarks = [remark for tally in self.tallies for remark in getattr(tally, "remarks", ())]
        return provenance.collect(
            model=subject.name,
            revision=subject.revision,
            weights=about["weights_hash"],
            subject=about,
            corpus=source.name,
            data=source.hash,
            unit=self.unit,
            counts=vars(report) | {"tokens": dict(report.tokens), "skipped": dict(source.skipped)},
            remarks=[*report.sentences_in_words(), *remarks],
            **self.facts,
        )


@dataclass(frozen=True)
class Programme:
    """Passes and trials, in their order; the first pass gives the table its provenance."""

    passes: tuple[Pass, ...]
    trials: tuple[Trial, ...] = ()

    def run(self, subject: Subject, telling: Telling | None = None, of: str = "") -> HeadTable:
        """Do all of it; `of` is put behind the name of each stage that is told."""
        table = HeadTable.of(subject.heads, {})
        telling = telling or _silently
        for one in self.passes:
            with telling(one.name + of, one.unit) as progress:
                table = _joined(table, one.run(subject, progress))
        return _joined(table, self._tried(subject, telling, of)) if self.trials else table

    def again(self) -> Programme:
        """The same with fresh tallies, to be run on another model; copy before the first run."""
        passes = [replace(one, tallies=deepcopy(one.tallies)) for one in self.passes]
        return replace(self, passes=tuple(passes))

    def _tried(self, subject: Subject, telling: Telling, of: str) -> HeadTable:
        with telling("Trials" + of, "trials") as progress:
            return run_trials(
                subject,
                trials=self.trials,
                lenient=True,
                progress=lambda done, total, _: progress(done, total),
            )


def _joined(table: HeadTable, more: HeadTable) -> HeadTable:
    """Both; what an earlier stage measured stays, and each corpus of its own is told."""
    new = more.without(name for name in more.names if name in table.names)
    about = {"corpora": {**table.provenance.get("corpora", {}), **_corpus(more)}}
    if "trials" in more.provenance:
        about["trials"] = {name: more.provenance[name] for name in ("trials", "remarks")}
    joined = table.join(new)
    joined.provenance = {**joined.provenance, **about}
    return joined


def _corpus(table: HeadTable) -> dict[str, Any]:
    about = table.provenance
    if "data" not in about:
        return {}
    return {about["corpus"]: {name: about[name] for name in ("data", "unit", "counts", "remarks")}}


def _note_left_out(table: HeadTable, stacks: Collection[str]) -> None:
    """Say of the stacks that nobody looked at that they are NA for this reason."""
    left_out = [f"{stack}: not surveyed" for stack in table.stacks if stack not in stacks]
    for name in table.names if left_out else ():
        table.notes[name] = "; ".join([*filter(None, [table.notes.get(name)]), *left_out])


def _silently(_: str, __: str) -> AbstractContextManager[Progress]:
    return nullcontext(lambda done, total: None)
