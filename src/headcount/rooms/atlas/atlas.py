"""The atlas: many models on many corpora and tasks, measured alike, on one page.

Every pair of a model and a corpus is a run directory; what a run holds already is not measured
again, so an atlas that was broken off, or has got another model, goes on.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
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
    hash_strings,
    json_encode,
    to_strict,
    write_bytes,
)
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


def run_atlas(
    plan: AtlasPlan, out: str | Path, *, engine: Engine | str | None = None
) -> pd.DataFrame:
    """Measure what is not there yet, and write the page, the figures and a run for each pair.

    `out` gets ``atlas.html``, ``atlas.json``, ``atlas.csv`` (a row for each model, corpus and
    part of the depth) and ``runs/``. A task that does not fit a model, or a model that cannot be
    measured, is a note on the page and no failure of the others.
    """
    out = Path(out)
    rows: list[dict[str, Any]] = []
    for model in plan.models:
        subject: Subject | None = None
        for corpus, read in plan.corpora.items():
            row: dict[str, Any] = {"model": model.name, "corpus": corpus, "notes": []}
            try:
                subject = subject or _subject(model, plan)
                row |= _measured(subject, corpus, read, plan, out, engine, model.name)
            except HeadcountError as error:
                row["notes"] = [*row["notes"], str(error)]
            rows.append(row)
    _write(rows, out)
    return pd.DataFrame(_long(rows))


def _subject(model: AtlasModel, plan: AtlasPlan) -> Subject:
    subject = load(model.source, **plan.loading)
    if model.twin is not None:
        subject = random_twin(subject, seed=model.twin)
    if model.drop_share is not None:
        task = _first_fitting(subject, plan)
        found = score(subject, task, by="gradient", batch_size=plan.batch_size)
        ranked = np.argsort(found.numbers("gradient"), kind="stable")
        gone = ranked[: round(model.drop_share * len(ranked))]
        if len(gone) == len(ranked):
            raise UsageError(
                f"drop_share of {model.name} is {model.drop_share:g}, which leaves none of "
                f"{len(ranked)} heads; give a smaller one."
            )
        subject = prune(subject, [found.heads[place] for place in gone.tolist()])
    subject.name = model.name
    return subject


def _first_fitting(subject: Subject, plan: AtlasPlan) -> Task:
    for make in plan.tasks.values():
        task = make()
        try:
            task.check(subject)
        except HeadcountError:
            continue
        return task
    raise UsageError(f"No task of the atlas fits {subject.name}, so none says which heads may go.")


def _measured(
    subject: Subject,
    corpus: str,
    read: Callable[[Subject], dict[str, Any]],
    plan: AtlasPlan,
    out: Path,
    engine: Engine | str | None,
    name: str,
) -> dict[str, Any]:
    """Survey, importance and curve of a model on a corpus; what the run holds is kept."""
    place = InnerPath(out) / "runs" / f"{_slug(name)}--{_slug(corpus)}"
    place.exists()  # a link is refused
    folder = Path(place)
    folder.parent.mkdir(parents=True, exist_ok=True)
    texts, notes = read(subject), list[str]()
    with Run.open(folder) as run:
        data = {key: one.hash if isinstance(one, Corpus) else one for key, one in texts.items()}
        weights = {"weights": subject.weights_hash}
        settings = {"atlas": corpus, "data": data, "control": plan.control, **weights}
        stage = run.stage("survey")
        if not stage.done_with(settings):
            if not stage.begun_with(settings):  # what is there is of another model, or other texts
                run.clear()
            stage.begin(settings)
            table = survey(
                subject,
                **texts,
                roles=RoleOptions(True, "random-init" if plan.control else None),
                reading=ReadingOptions(batch_size=plan.batch_size),
                engine=engine,
                run=ShardWork(folder=run.shards("survey")),
            )
            run.write_table(table)
            stage.finish(settings, table.provenance)
            run.drop_shards("survey")
        go: dict[str, Any] = {}
        for task_name, make in plan.tasks.items():
            task = make() if plan.limit is None else make().limit(plan.limit, 0)
            try:
                task.check(subject)
            except HeadcountError as error:
                notes.append(f"{task_name}: {error}")
                continue
            go[task_name] = _can_go(subject, task_name, task, run, plan, engine)
        return {**_summary(run.read_table()), "can_go": go, "notes": notes}


def _can_go(
    subject: Subject, name: str, task: Task, run: Run, plan: AtlasPlan, engine: Engine | str | None
) -> dict[str, Any]:
    """How many heads can be pruned by a task; its gradient score is in the run's table."""
    settings = {"task": task.hash, "metric": task.metric.name, "step": plan.step}
    settings["weights"] = subject.weights_hash
    stage = run.stage(f"atlas-{_slug(name)}")
    if not stage.done_with(settings):
        prune_run = Run.open(run.path.parent / f"{run.path.name}--{_slug(name)}")
        with prune_run:
            if not prune_run.stage("atlas").begun_with(settings):
                prune_run.clear()
            prune_run.stage("atlas").begin(settings)
            found = prune_plan(
                subject,
                task,
                by="gradient",
                drop_share=0,
                ranking=RankingOptions(
                    step=plan.step, stacks=stacks_read(task, subject), batch_size=plan.batch_size
                ),
                engine=engine,
                run=prune_run,
            )
            scores = prune_run.read_table()
        table = run.read_table()
        if "gradient" not in table.names:  # that of the first task that fits
            run.write_table(table.join(scores, replace=True))
        run.write_frame(f"curve-{_slug(name)}", found.curve)
        stage.finish(settings)
    judged = can_go(run.read_frame(f"curve-{_slug(name)}"))
    return judged[0].to_dict() if judged else {}


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
        row |= {state: float((part["state"] == state).mean()) for state in _STATES}
        if gradient is not None and gradient.sum() > 0:
            row["importance"] = float(gradient[part.index].sum() / gradient.sum())
        by_depth.append(row)
    found: dict[str, Any] = {"heads": len(frame), "stacks": list(table.stacks), "depths": by_depth}
    found |= {state: float((frame["state"] == state).mean()) for state in _STATES}
    if gradient is not None and gradient.sum() > 0:
        found["heads_of_half"] = _heads_of(gradient.to_numpy(dtype=float), 0.5)
    return found


_STATES = ("works", "rests", "unnamed")


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
    found = []
    for row in rows:
        go = {f"can_go_{name}": one.get("heads") for name, one in row.get("can_go", {}).items()}
        about = {key: row.get(key) for key in ("model", "corpus", "heads", "heads_of_half")}
        for depth in row.get("depths", []):
            own = {key: value for key, value in depth.items() if key not in ("roles", "heads")}
            roles = {f"role_{name}": share for name, share in depth["roles"].items()}
            found.append({**about, **own, "heads_here": depth["heads"], **roles, **go})
    return found


# --- The page -------------------------------------------------------------------------------------

_COLOURS = {"works": "#2b6cb0", "rests": "#b7bcc6", "unnamed": "#eceef2"}
_STYLE = """
body{font:15px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem;
color:#1c2330}
table{border-collapse:collapse;width:100%}th,td{text-align:left;padding:.35rem .6rem;
border-bottom:1px solid #dde1e8;vertical-align:top}td.n{text-align:right;
font-variant-numeric:tabular-nums}.dim{color:#5b6472;font-size:13px}svg{display:block}
@media (prefers-color-scheme:dark){body{background:#14181f;color:#e6e9ef}
th,td{border-color:#2c3440}.dim{color:#9aa4b2}}
"""


def _write(rows: Sequence[dict[str, Any]], out: Path) -> None:
    """The page, and the same figures for machines."""
    out.mkdir(parents=True, exist_ok=True)
    write_bytes(out / "atlas.html", atlas_page(rows).encode())
    write_bytes(out / "atlas.json", (json_encode(to_strict(rows), indent=1) + "\n").encode())
    write_bytes(out / "atlas.csv", pd.DataFrame(_long(rows)).to_csv(index=False).encode())


def atlas_page(rows: Sequence[Mapping[str, Any]]) -> str:
    """One HTML file without script: a row for each model and corpus, bars by depth."""
    body = "\n".join(_row(row) for row in rows)
    marks = " ".join(
        f'<svg width="11" height="11" role="img" aria-label="{name}"><rect width="11" height="11" '
        f'fill="{colour}"/></svg> {name}'.replace("<svg", '<svg style="display:inline"')
        for name, colour in _COLOURS.items()
    )
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Atlas of heads</title>
<meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head><body>
<h1>Atlas of heads</h1>
<p>Every model was measured alike. Bars stand for quarters of the depth of each stack, the first
layers on the left: heads with a role at which they work, heads that look much at one place,
heads without a name; below, the share of all importance (gradient) in that quarter. {marks}</p>
<table><thead><tr><th>Model</th><th>Corpus</th><th>Heads</th><th>With a role</th>
<th>Roles by depth</th><th>Importance by depth</th><th>Half of it is in</th><th>What could go</th>
</tr></thead><tbody>
{body}
</tbody></table></body></html>
"""


def _row(row: Mapping[str, Any]) -> str:
    if "heads" not in row:
        why = escape(" ".join(row["notes"]) or "not measured")
        return (
            f"<tr><td>{escape(row['model'])}</td><td>{escape(row['corpus'])}</td>"
            f'<td colspan="6" class="dim">{why}</td></tr>'
        )
    go = "<br>".join(
        f"{one['heads']} of {row['heads']} by {escape(name)} "
        f'<span class="dim" title="{escape(one["sentence"])}">within {escape(one["within"])}</span>'
        for name, one in row["can_go"].items()
        if one
    )
    notes = "".join(f'<div class="dim">{escape(note)}</div>' for note in row["notes"])
    half = f"{row['heads_of_half']:.0%} of heads" if "heads_of_half" in row else "–"
    return (
        f"<tr><td>{escape(row['model'])}</td><td>{escape(row['corpus'])}</td>"
        f'<td class="n">{row["heads"]}</td><td class="n">{row["works"] + row["rests"]:.0%}'
        f'<div class="dim">{row["rests"]:.0%} at one place</div></td>'
        f"<td>{_stacked(row['depths'])}</td><td>{_bars(row['depths'])}</td>"
        f'<td class="n">{half}</td><td>{go or "–"}{notes}</td></tr>'
    )


def _stacked(depths: Sequence[Mapping[str, Any]]) -> str:
    """Columns of states, one for each part of the depth."""
    parts = []
    for place, depth in enumerate(depths):
        top = 0.0
        named = ", ".join(f"{name} {share:.0%}" for name, share in depth["roles"].items())
        for state in _STATES:
            height = 48 * depth[state]
            parts.append(
                f'<rect x="{place * 26}" y="{top:.1f}" width="22" height="{height:.1f}" '
                f'fill="{_COLOURS[state]}"><title>{escape(named)}</title></rect>'
            )
            top += height
    label = "; ".join(f"quarter {d['depth'] + 1}: {d['works']:.0%} work" for d in depths)
    return _drawn(parts, label)


def _bars(depths: Sequence[Mapping[str, Any]]) -> str:
    """A column for the importance in each part of the depth."""
    if not all("importance" in depth for depth in depths):
        return "–"
    most = max(depth["importance"] for depth in depths)
    parts = [
        f'<rect x="{place * 26}" y="{48 - 48 * d["importance"] / most:.1f}" width="22" '
        f'height="{48 * d["importance"] / most:.1f}" fill="#c05621">'
        f"<title>{d['importance']:.0%}</title></rect>"
        for place, d in enumerate(depths)
    ]
    label = "; ".join(f"quarter {d['depth'] + 1}: {d['importance']:.0%}" for d in depths)
    return _drawn(parts, label)


def _drawn(parts: Sequence[str], label: str) -> str:
    about = f'width="104" height="48" role="img" aria-label="{escape(label)}"'
    return f"<svg {about}>{''.join(parts)}</svg>"
