"""The atlas: many models on many corpora and tasks, measured alike, on one page.

Every pair of a model and a corpus is a run directory; what a run holds already is not measured
again, so an atlas that was broken off, or has got another model, goes on.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from headcount.errors import HeadcountError, UsageError
from headcount.importance import score, stacks_read
from headcount.models import Subject, load
from headcount.pruning import RankingOptions, can_go, prune, prune_plan
from headcount.records import (
    Engine,
    HeadTable,
    InnerPath,
    Run,
    Stage,
    hash_strings,
    json_encode,
    to_strict,
    write_bytes,
)
from headcount.rooms.show import template
from headcount.rooms.twins import random_twin
from headcount.surveys import ReadingOptions, RoleOptions, ShardWork, survey
from headcount.tasks import Task
from headcount.text import Corpus

#: Parts of a stack's depth that layers are put into, so that models of any depth can be compared.
DEPTHS = 4


@dataclass(frozen=True)
class AtlasModel:
    """A model of an atlas: loaded, or made of another one."""

    name: str
    source: str
    #: The seed of a random twin, where it is one.
    twin: int | None = None
    #: The share of heads that are removed, the least important by the gradient on the first task.
    drop_share: float | None = None


@dataclass(frozen=True)
class AtlasPlan:
    """What an atlas measures: every model on every corpus, and on every task that fits it."""

    models: Sequence[AtlasModel]
    #: Gives a corpus for a model: the arguments of a survey.
    corpora: Mapping[str, Callable[[Subject], dict[str, Any]]]
    #: Gives the task.
    tasks: Mapping[str, Callable[[], Task]]
    control: bool = False
    step: float = 10.0
    limit: int | None = None
    batch_size: int = 16
    loading: Mapping[str, Any] = field(default_factory=dict)
    engine: Engine | str | None = None

    def run(self, out: str | Path) -> pd.DataFrame:
        """Measure what is not there yet, and write the page, the figures and a run for each pair.

        `out` gets ``atlas.html``, ``atlas.json``, ``atlas.csv`` (a row for each model, corpus and
        part of the depth) and ``runs/``. A task that does not fit a model, or a model that cannot
        be measured, is a note on the page and no failure of the others.
        """
        out = Path(out)
        rows: list[dict[str, Any]] = []
        for model in self.models:
            subject: Subject | None = None
            for corpus, read in self.corpora.items():
                row: dict[str, Any] = {"model": model.name, "corpus": corpus, "notes": []}
                try:
                    subject = subject or self._subject(model)
                    row |= self._measured(subject, corpus, read(subject), out)
                except HeadcountError as error:
                    row["notes"] = [str(error)]
                rows.append(row)
        long = pd.DataFrame(_long(rows))
        out.mkdir(parents=True, exist_ok=True)
        page = template(__file__, "atlas.html").render(rows=rows, states=_COLOURS)
        write_bytes(out / "atlas.html", page.encode())
        write_bytes(out / "atlas.json", (json_encode(to_strict(rows), indent=1) + "\n").encode())
        write_bytes(out / "atlas.csv", long.to_csv(index=False).encode())
        return long

    def _subject(self, model: AtlasModel) -> Subject:
        subject = load(model.source, **self.loading)
        if model.twin is not None:
            subject = random_twin(subject, seed=model.twin)
        if model.drop_share is not None:
            fitting = (task for _, task, why in self._tasks(subject) if not why)
            if (task := next(fitting, None)) is None:
                raise UsageError(
                    f"No task of the atlas fits {subject.name}, so none says which heads may go."
                )
            scores = score(subject, task, by="gradient", batch_size=self.batch_size)
            ranked = np.argsort(scores.numbers("gradient"), kind="stable")
            gone = ranked[: round(model.drop_share * len(ranked))]
            if len(gone) == len(ranked):
                raise UsageError(
                    f"drop_share of {model.name} is {model.drop_share:g}, which leaves none of "
                    f"{len(ranked)} heads; give a smaller one."
                )
            subject = prune(subject, [scores.heads[place] for place in gone.tolist()])
        subject.name = model.name
        return subject

    def _tasks(self, subject: Subject) -> Iterator[tuple[str, Task, str]]:
        """The name of each task, the task, and why it does not fit the model, if so."""
        for name, make in self.tasks.items():
            task, why = make(), ""
            try:
                task.check(subject)
            except HeadcountError as error:
                why = str(error)
            yield name, task, why

    def _measured(
        self, subject: Subject, corpus: str, texts: dict[str, Any], out: Path
    ) -> dict[str, Any]:
        """Survey, importance and curve of a model on a corpus; what the run holds is kept."""
        place = InnerPath(out) / "runs" / f"{_slug(subject.name)}--{_slug(corpus)}"
        place.exists()  # a link is refused
        folder = Path(place)
        folder.parent.mkdir(parents=True, exist_ok=True)
        data = {key: one.hash if isinstance(one, Corpus) else one for key, one in texts.items()}
        weights = {"weights": subject.weights_hash}
        settings = {"atlas": corpus, "data": data, "control": self.control, **weights}
        go, notes = dict[str, Any](), list[str]()
        with Run.open(folder) as run:
            if (stage := _left(run, "survey", settings)) is not None:
                table = survey(
                    subject,
                    **texts,
                    roles=RoleOptions(True, "random-init" if self.control else None),
                    reading=ReadingOptions(batch_size=self.batch_size),
                    engine=self.engine,
                    run=ShardWork(folder=run.shards("survey")),
                )
                run.write_table(table)
                stage.finish(settings, table.provenance)
                run.drop_shards("survey")
            for name, task, why in self._tasks(subject):
                if why:
                    notes.append(f"{name}: {why}")
                else:
                    some = task if self.limit is None else task.limit(self.limit, 0)
                    go[name] = self._can_go(subject, name, some, run)
            return {**_summary(run.read_table()), "can_go": go, "notes": notes}

    def _can_go(self, subject: Subject, name: str, task: Task, run: Run) -> dict[str, Any]:
        """How many heads can be pruned by a task; its gradient score is in the run's table."""
        settings = {"task": task.hash, "metric": task.metric.name, "step": self.step}
        settings["weights"] = subject.weights_hash
        stacks = stacks_read(task, subject)
        ranking = RankingOptions(step=self.step, stacks=stacks, batch_size=self.batch_size)
        with Run.open(run.path.parent / f"{run.path.name}--{_slug(name)}") as pruned:
            if (stage := _left(pruned, "atlas", settings)) is not None:
                how: dict[str, Any] = {"engine": self.engine, "run": pruned}
                prune_plan(subject, task, by="gradient", drop_share=0, ranking=ranking, **how)
                stage.finish(settings)
            scores, curve = pruned.read_table(), pruned.read_frame("curve")
        table = run.read_table()
        if "gradient" not in table.names:  # that of the first task that fits
            run.write_table(table.join(scores, replace=True))
        judged = can_go(curve)
        return judged[0].to_dict() if judged else {}


def _left(run: Run, name: str, settings: Mapping[str, Any]) -> Stage | None:
    """A stage that is to be done; a run of another model, or of other texts, begins anew."""
    stage = run.stage(name)
    if stage.done_with(settings):
        return None
    if not stage.begun_with(settings):
        run.clear()
    stage.begin(settings)
    return stage


#: Characters of a name that are read in its folder's.
_READ = 60


def _slug(name: str) -> str:
    """A name for a folder of any system, another one for every name.

    A name that is not such by itself bears a part of its hash.

    >>> _slug("smollm2"), _slug("a-1"), _slug("A.1")
    ('smollm2', 'a-1', 'a-1-ca6a38f2ef0c')
    """
    plain = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:_READ]
    if plain and plain == name and not re.search(r"(^|-)[0-9a-f]{12}$", name):
        return plain
    return f"{plain}-{hash_strings([name]).rpartition(':')[2][:12]}".lstrip("-")


# --- A run in a few figures -----------------------------------------------------------------------


def _summary(table: HeadTable) -> dict[str, Any]:
    """Roles and importance of a table, as a whole and by the depth of layers."""
    frame = table.frame.reset_index()
    frame["depth"] = _depths(frame)
    gradient = frame.get("gradient")
    roles = table.details.get("roles", pd.DataFrame(columns=["stack", "layer", "head", "rests"]))
    busy = roles[~roles["rests"].astype(bool)] if len(roles) else roles
    key = ["stack", "layer", "head"]
    does = set(map(tuple, busy[key].itertuples(index=False)))
    any_role = set(map(tuple, roles[key].itertuples(index=False)))
    heads = [tuple(one) for one in frame[key].itertuples(index=False)]
    frame["state"] = [
        "works" if head in does else "rests" if head in any_role else "unnamed" for head in heads
    ]
    frame["named"] = frame["role"].fillna("none") if "role" in frame else "none"
    by_depth = []
    for depth in range(DEPTHS):
        part = frame[frame["depth"] == depth]
        if part.empty:
            continue
        shares = part["named"].value_counts(normalize=True).to_dict()
        row: dict[str, Any] = {"depth": depth, "heads": len(part), "roles": shares}
        row |= {state: float((part["state"] == state).mean()) for state in _COLOURS}
        if gradient is not None and gradient.sum() > 0:
            row["importance"] = float(gradient[part.index].sum() / gradient.sum())
        by_depth.append(row)
    about: dict[str, Any] = {"heads": len(frame), "stacks": list(table.stacks), "depths": by_depth}
    about |= {state: float((frame["state"] == state).mean()) for state in _COLOURS}
    if gradient is not None and gradient.sum() > 0:
        about["heads_of_half"] = _heads_of(gradient.to_numpy(dtype=float), 0.5)
    return about


def _depths(frame: pd.DataFrame) -> pd.Series:
    """Which part of its stack's depth a layer stands in, from 0."""
    last = frame.groupby("stack")["layer"].transform("max")
    return (frame["layer"] * DEPTHS // (last + 1)).clip(upper=DEPTHS - 1)


def _heads_of(values: np.ndarray, share: float) -> float:
    """The share of heads, the most important first, that have so much of all importance.

    >>> _heads_of(np.array([6.0, 2.0, 1.0, 1.0]), 0.5)
    0.25
    """
    ranked = np.sort(values[~np.isnan(values)])[::-1].cumsum()
    return float(np.searchsorted(ranked, share * ranked[-1]) + 1) / len(values)


def _long(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """A row for each model, corpus and part of the depth, as the CSV has it."""
    lines = []
    for row in rows:
        go = {f"can_go_{name}": one.get("heads") for name, one in row.get("can_go", {}).items()}
        about = {key: row.get(key) for key in ("model", "corpus", "heads", "heads_of_half")}
        for depth in row.get("depths", []):
            own = {key: value for key, value in depth.items() if key not in ("roles", "heads")}
            roles = {f"role_{name}": share for name, share in depth["roles"].items()}
            lines.append({**about, **own, "heads_here": depth["heads"], **roles, **go})
    return lines


#: States of heads on the page, each with its colour.
_COLOURS = {"works": "#2b6cb0", "rests": "#b7bcc6", "unnamed": "#eceef2"}
