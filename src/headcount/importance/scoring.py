"""The score: how much every head matters to a task, by one measure or several, in one table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from headcount import plugins
from headcount.errors import InputError, UsageError
from headcount.importance.examples import GROUP, Interrupted, Score, ScoreOptions, origin
from headcount.models import Subject, bare_table, check_subject, fingerprint_of
from headcount.records import (
    Engine,
    EngineOptions,
    HeadTable,
    Journal,
    Run,
    engine_of,
    old_keywords,
    writable_run,
)
from headcount.surveys import COLUMNS, ReadingOptions, survey
from headcount.tasks import Task
from headcount.text import read_corpus

# --- Which options belong to which score, sorted out before any work begins ---------------------


def read_names(by: str | Sequence[str]) -> list[str]:
    """The chosen scores, each once: a list, or words with commas between.

    >>> read_names("gradient, confidence,gradient")
    ['gradient', 'confidence']
    """
    words = by.split(",") if isinstance(by, str) else list(by)
    names = list(dict.fromkeys(word.strip() for word in words if word.strip()))
    if not names:
        raise UsageError(f"No score was asked for; choose {', '.join(_scores())}, or a column.")
    return names


def options_by_score(names: Sequence[str], options: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The options of each score; an option that no chosen score takes is refused.

    >>> options_by_score(["gradient", "relevance"], {"per": "token,sentence", "mode": None})
    {'gradient': {'per': 'token'}, 'relevance': {'per': 'sentence'}}
    """
    given = {key: value for key, value in options.items() if value is not None}
    sorted_out: dict[str, dict[str, Any]] = {name: {} for name in names}
    chosen = {name: _score_of(name) for name in names if name in _scores()}
    for key, value in given.items():
        takers = [name for name, one in chosen.items() if key in one.takes]
        if not takers:
            every = plugins.every("scores")
            owners = " or ".join(name for name, one in every.items() if key in one.takes)
            raise UsageError(
                f"{key} is '{value}', an option of {owners}, and the scores asked for are "
                f"{', '.join(names)}; leave {key} out."
            )
        for name in takers:
            words = _words_of(name, takers, str(value)) if key == "per" else value
            if words:
                sorted_out[name][key] = words
    return sorted_out


def column_of(name: str, options: Mapping[str, Any]) -> str:
    """The column that a score fills: ablation has one for each unit.

    >>> column_of("ablation", {"unit": "others"}), column_of("gradient", {})
    ('ablation_others', 'gradient')
    """
    return _score_of(name).filled(options) if name in _scores() else name


def _scores() -> list[str]:
    return plugins.names_of("scores")


def _score_of(name: str) -> Score:
    made: Score = plugins.get("scores", name)()
    return made


def _words_of(name: str, takers: Sequence[str], value: str) -> str:
    """What of `per` is for a score: all of it where no other takes it, else its own words."""
    if len(takers) == 1:
        return value
    words = [word.strip() for word in value.split(",")]
    known = [word for score in takers for word in _score_of(score).per]
    for word in words:
        if word not in known:
            raise UsageError(f"per is '{word}'; choose {', '.join(known[:-1])} or {known[-1]}.")
    return ",".join(word for word in words if word in _score_of(name).per)


# --- What a score reads of a task ---------------------------------------------------------------


def stacks_read(task: Task, subject: Subject) -> tuple[str, ...]:
    """The stacks whose tokens a task knows: of an encoder-decoder that only reads, the encoder."""
    if subject.kind == "enc-dec" and task.kind != "translation":
        return ("enc",)
    return subject.anatomy.stacks


# --- The score ----------------------------------------------------------------------------------


@old_keywords()
def score(
    subject: Subject,
    task: Task,
    by: str | Sequence[str] = "gradient",
    *,
    table: HeadTable | None = None,
    run: Run | str | Path | None = None,
    replace: bool = False,
    compare: bool = True,
    per: str | None = None,
    normalize: str | None = None,
    mode: str | None = None,
    unit: str | None = None,
    metric: str | None = None,
    steps: int | None = None,
    rule: str | None = None,
    predictions: int | str | None = None,
    restrict: Any = None,
    convention: str = "headcount",
    batch_size: int = 16,
    limit: int | None = None,
    seed: int | None = None,
    engine: Engine | EngineOptions | str | None = None,
) -> HeadTable:
    """Score every head of a model on a task: a column a measure, higher is more important.

    `by` is "gradient" or "ablation" (Michel et al. 2019), "relevance" (Voita et al. 2019),
    "contribution" (gradient times activation), a column of `table`, a column of the survey such as
    "confidence", measured on the task's texts where the table has none, or several of these.
    `per`, `normalize` and `steps` (of integrated gradients; 8 are usual) are options of the
    gradient; `mode`, `unit` and `metric` of ablation, whose default metric is the teacher-forced
    loss; `rule` of relevance, `per` and `predictions` (explained of a text: a number or "all") of
    relevance and contribution; `restrict`, the first and the last tokens that are seen, of
    "restriction".

    With a `run`, the path of a directory, the columns join what is there, unless `replace` starts
    its table anew; `compare` also writes how far its scores agree (agreement.parquet). Every
    finished unit is on the disk at once: after a kill the same call goes on and ends with the same
    table. Ctrl-C leaves what was measured so far and raises `Interrupted`, which has it too.
    `limit` takes the first examples, or with a `seed` a random sample. Batches and interventions
    are done in this process or by the workers of an `engine` ("ray", `RayEngine(...)`), with the
    same numbers. An example that the model breaks on is set aside, and the remarks name it.

    >>> import headcount as hc
    >>> from headcount.bundle import sample
    >>> task = hc.tasks.translation(sample.pairs()[:4], metric="loss")
    >>> score(hc.load("translator", device="cpu"), task, by="gradient,confidence")
    HeadTable(144 heads: enc 48, dec 48, cross 48; 2 columns: gradient, confidence)
    """
    # Batches as a model takes them, or a DataLoader of them, are made a task.
    first = task[0] if isinstance(task, list | tuple) and task else None
    if hasattr(task, "collate_fn") or isinstance(first, Mapping):
        task = plugins.get("tasks", "batches")(task)
    check_subject(subject, "score(subject, task)")
    check_task(task, "score")
    names, where = read_names(by), engine_of(engine)
    given: dict[str, Any] = {
        "per": per,
        "normalize": normalize,
        "mode": mode,
        "unit": unit,
        "metric": metric,
    }
    given |= {"steps": steps, "rule": rule, "predictions": predictions, "restrict": restrict}
    options = options_by_score(names, given)
    task = task if limit is None else task.limit(limit, seed)
    with writable_run(run) as kept:
        work = _Work(subject, task, table, kept)
        work.begin(replace)
        check_score_names(names, work.table)
        with work.journal() as journal:
            how = ScoreOptions(convention, batch_size, seed, journal, where)
            for name in names:
                work.measure(name, how, options[name])
        columns = [column_of(name, options[name]) for name in names] if compare else None
        return work.finish(names, columns, journal)


def check_score_names(names: Sequence[str], table: HeadTable | None) -> None:
    """Refuse what is neither a score, nor a column at hand, nor one that a survey has."""
    there = [] if table is None else table.names
    surveyed = [column.name for column in COLUMNS]
    for name in names:
        if name not in (*_scores(), *there, *surveyed):
            columns = ", ".join(dict.fromkeys([*there, *surveyed]))
            raise UsageError(
                f"There is no score '{name}'; choose {', '.join(_scores())}, or one of the columns "
                f"{columns}."
            )


# --- the work -----------------------------------------------------------------------------------


@dataclass
class _Work:
    """Scores under way, and the table that they are gathered in."""

    subject: Subject
    task: Task
    table: HeadTable | None
    run: Run | None

    def begin(self, replace: bool) -> None:
        """Look at what the run has, and refuse one of another model before the work begins."""
        if self.run is None:
            return
        bare = bare_table(self.subject)
        if replace:
            self.run.write_table(bare, replace=True)
        self.run.check_subject(bare)
        if self.run.has_table and not replace:
            old = self.run.read_table()
            self.table = old if self.table is None else old.join(self.table, replace=True)

    @contextmanager
    def journal(self) -> Iterator[Journal | None]:
        """The run's journal: for the same model and the same examples only."""
        if self.run is None:
            yield None
            return
        about = self.task.describe()
        fingerprint = {
            "what": "headcount score",
            **fingerprint_of(self.subject),
            "data": about.pop("hash"),
            "task": {key: value for key, value in about.items() if key != "data"},
        }
        with self.run.journal(fingerprint) as journal:
            yield journal

    def measure(self, name: str, how: ScoreOptions, options: Mapping[str, Any]) -> None:
        """One score: measured, or found in the table."""
        stage = None if self.run is None else self.run.stage(f"score-{name}")
        if name not in _scores() and self.table is not None and name in self.table.names:
            return
        try:
            found = self._measured(name, how, options)
        except KeyboardInterrupt as stop:
            if isinstance(stop, Interrupted):
                self.keep(stop.table)
            if self.table is None:
                raise
            where = "" if self.run is None else f"{self.run.path}/, and the same call goes on."
            told = where and f"Interrupted; what was measured is in {where}"
            raise Interrupted(self.table, told) from None
        self.keep(found)
        if stage is not None:
            about = found.provenance
            stage.finish({"convention": how.convention, **about["settings"]}, about)

    def _measured(self, name: str, how: ScoreOptions, options: Mapping[str, Any]) -> HeadTable:
        """A score, or a column of the survey on the texts of the task."""
        subject, task = self.subject, self.task
        if name in _scores():
            table = _score_of(name).compute(subject, task, replace(how, own=options))
            if not table.provenance.get("task"):  # a score of somebody's own may say nothing
                table.provenance = origin(subject, task, convention=how.convention, seed=how.seed)
            return table
        corpus = read_corpus(task.texts())
        corpus.name = task.name
        reading = ReadingOptions(
            convention=how.convention,
            batch_size=how.batch_size,
            stacks=stacks_read(task, subject),
        )
        return survey(subject, corpus, columns=[name], reading=reading, engine=how.engine)

    def keep(self, found: HeadTable) -> None:
        """Put columns into the table, and into the run."""
        self.table = found if self.table is None else self.table.join(found, replace=True)
        if self.run is not None:
            self.run.write_table(self.table)

    def finish(
        self, names: Sequence[str], columns: Sequence[str] | None, journal: Journal | None
    ) -> HeadTable:
        """Compare the scores, and remove the journal where nothing of it is still needed."""
        assert self.table is not None  # one score or more was measured, or found in it
        if self.run is not None and journal is not None:
            room = None if columns is None else plugins.part("agreement")
            frame = None if room is None else room.compared(self.table, columns)
            if frame is not None:
                self.run.write_frame("agreement", frame)
            if all(unit.split()[0] in names for unit in journal.done):
                self.run.drop_journal()
        return self.table


def check_task(given: Any, verb: str) -> None:
    """Refuse what is no task, or one without examples."""
    if not isinstance(given, Task):
        raise UsageError(
            f"{verb} takes a task, not {type(given).__name__} {str(given)[:60]!r}; make one with "
            "hc.tasks, e.g. hc.tasks.classification(examples)."
        )
    if not len(given):
        raise InputError(f"The task {given!r} has no examples, so nothing can be scored on it.")


def importance_columns(table: HeadTable) -> list[str]:
    """The columns that say how much a head matters, and confidence, which often goes with it."""
    return [
        name
        for name in table.names
        if table.column(name).direction is not None
        and (table.column(name).group == GROUP or name == "confidence")
    ]
