"""A whole pruning into a folder: planned, cut, saved, proved to load, and kept with its curve."""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from headcount import plugins
from headcount.errors import RunError, UsageError
from headcount.models import Saved, Subject, bare_table
from headcount.pruning.curve import removal_table
from headcount.pruning.cut import keeps
from headcount.pruning.goal import (
    JOURNAL,
    OutputFolder,
    RankingOptions,
    ResultOptions,
    TrainingOptions,
)
from headcount.pruning.plan import Plan, plan_of_heads, prune_plan
from headcount.pruning.remove import prune, read_heads
from headcount.pruning.tolerance import can_go, in_points, lost_at, unit_of
from headcount.records import (
    Engine,
    EngineOptions,
    Head,
    HeadTable,
    InnerPath,
    Run,
    json_decode,
    json_encode,
    old_keywords,
    provenance,
    write_bytes,
)
from headcount.tasks import LanguageModelling, Task

# --- A whole pruning into a folder --------------------------------------------------------------


@dataclass(frozen=True)
class Pruned:
    """What came of a pruning."""

    going: tuple[Head, ...]
    #: None where heads were named and no task was given.
    plan: Plan | None
    #: The model that is left; None where nothing could go.
    small: Subject | None
    #: By what was saved: "model", "onnx", "zeros"; empty for a dry run.
    saved: dict[str, Saved]
    #: Before and after, `ModelCosts` of the room `bench`; empty without it.
    costs: tuple[Any, ...]
    notes: tuple[str, ...]
    #: What heads with a role matter, where roles are known: `by_role` of the room `agreement`.
    function: pd.DataFrame | None = None
    #: The survey of the model that is left, where one was asked for; its details have what became
    #: of the roles that were there, `role_survival`.
    survey: HeadTable | None = None
    #: Prompt, what the whole model says, and what the one that is left says; of lm tasks.
    said: tuple[tuple[str, str, str], ...] = ()
    #: The same survey of the whole model.
    before: HeadTable | None = None


@old_keywords(result=ResultOptions)
def prune_run(
    subject: Subject,
    task: Task | None,
    *,
    heads: str | Sequence[str | Head] | None = None,
    gates: TrainingOptions | None = None,
    heal: TrainingOptions | None = None,
    place: OutputFolder | None = None,
    result: ResultOptions | None = None,
    batch_size: int = 16,
    seed: int = 0,
    engine: Engine | EngineOptions | str | None = None,
    draw: Callable[[Plan, Path], list[str]] | None = None,
    **how: Any,
) -> Pruned:
    """Plan a pruning, cut the heads out, and save the model that is left in `place`.

    `heads` are removed as they are named; with `gates` a training closes them, and `how` are the
    options of `gates_plan`; else those of `prune_plan`. With `heal` the model that is left is
    trained too. Without a `place` nothing is written; `draw` makes a picture of the curve there and
    gives notes. `result` (`ResultOptions`) says what is written: another `export`, weights of
    `save_dtype`, with `force` in place of a model that is there. Its `survey` is a text or a
    treebank on which the whole model and the one that is left are surveyed, as figure 8 of Voita et
    al. 2019 needs; roles that a `table` of `how` has of the same model, text and settings are not
    measured again. What was measured is kept until the last record is written: the same call goes
    on after a kill, wherever that was.
    """
    wanted = result or ResultOptions()
    export, force, judging = wanted.export, wanted.force, None
    tried = plugins.part("verify")(wanted.verify, export) if wanted.verify else None
    if wanted.survey is not None:
        kept = None if place is None else place.training / "survey"
        room = plugins.get("parts", "agreement")
        judging = room.RolesLeft.on(subject, wanted.survey, batch_size, kept)

    def resumed(training: TrainingOptions, kind: str) -> TrainingOptions:
        checkpoint = None if place is None else place.training / kind
        return replace(training, checkpoint=checkpoint)

    notes: list[str] = []
    training: Any = plugins.get("parts", "training") if gates or heal else None
    with _warnings_into(notes), _run_at(place, task, subject, force) as run:
        common: dict[str, Any] = {"run": run, "batch_size": batch_size, "seed": seed}
        common["engine"] = engine
        plan, small = None, None
        if gates is not None:
            assert task is not None  # nothing can be learned without one
            plan, small = training.gates_plan(subject, task, resumed(gates, "gates"), **how)
        elif heads is None:
            assert task is not None  # a score needs one
            ranking = replace(
                how.pop("ranking", RankingOptions()), batch_size=batch_size, seed=seed
            )
            plan = prune_plan(subject, task, **how, ranking=ranking, run=run, engine=engine)
            how |= asdict(ranking)
            small = plan.prune(subject) if plan.going else None
        else:
            going = tuple(read_heads(heads, subject.heads))
            keeps(subject.anatomy, going)  # heads that only go together are named before the work
            if task is not None:
                plan = plan_of_heads(subject, task, going, halve=heal is not None, **common)
            small = prune(subject, going)
        if heal is not None and plan is not None and small is not None:
            plan, small = training.healed_plan(plan, subject, small, resumed(heal, "heal"))
        left = set(subject.heads if small is None else small.heads)
        going = tuple(head for head in subject.heads if head not in left)
        notes += [] if plan is None else plan.notes
        notes += _warned(subject, task, place, export)
        go_on = plugins.part("continuations")
        asked = go_on is not None and small is not None and task is not None
        said = go_on(subject, small, task) if asked else ()
        saved: dict[str, Saved] = {}
        known: HeadTable | None = how.get("table")  # whose scores rank heads may know roles too
        before, after = None, None
        marked = nullcontext(True) if place is None else _marked(place, subject, going, force)
        with marked as may_replace:
            if place is not None:
                if small is not None:
                    about = card_of(subject, small, going, plan)
                    how_saved: dict[str, Any] = {"force": may_replace, "about": about}
                    saved["model"] = small.save(place.model, dtype=wanted.save_dtype, **how_saved)
                if small is not None and export is not None:
                    folder = place.folder / export
                    saved[export] = small.save(folder, export=export, **how_saved)
                notes += [] if draw is None or plan is None else draw(plan, place.picture)
                judge = plugins.part(f"judge {export}") if small and plan else None
                notes += [] if judge is None else judge(subject, plan, small, saved)
                notes += [tried(small, saved)] if tried and small else []
            if judging is not None and small is not None:
                before, after, told = judging.of(small, known)
                known = before
                notes += told
                if place is not None:
                    before.save(place.before, replace=True)
                    after.save(place.survey, replace=True)
            function = _record(run, subject, plan, going, known, saved, how)
            if place is not None:
                place.training.remove_all()
    counted = plugins.part("costs")
    costs = () if counted is None else counted(subject, small or subject)
    said_of = tuple(dict.fromkeys(notes))
    return Pruned(going, plan, small, saved, costs, said_of, function, after, said, before)


def _warned(
    subject: Subject, task: Task | None, place: OutputFolder | None, export: str | None
) -> list[str]:
    """What people who prune an instruct model, or one that came quantised, should know."""
    notes = []
    template = getattr(subject.tokenizer, "chat_template", None)
    if isinstance(task, LanguageModelling) and template and not task.chat:
        notes.append(
            f"{subject.name} has a chat template, and the loss on plain text says little of its "
            "answers; judge it in chat (--chat, lm:FILE,chat=yes), and read what it says."
        )
    if place is not None and subject.stored == "quantised" and export != "gguf":
        notes.append(
            "Its weights came quantised (GGUF) and are saved unpacked, so the folder is larger "
            "than the file; --export save-dtype=float16 halves it, --ranking even --export gguf "
            "writes GGUF back."
        )
    return notes


def card_of(
    subject: Subject, small: Subject, going: Sequence[Head], plan: Plan | None
) -> list[str]:
    """The text of a pruned model's card: removed heads, their cost, how it was judged."""
    before, after = subject.inner.num_parameters(), small.inner.num_parameters()
    told = [
        "## What was removed",
        f"{len(going)} of {len(subject.heads)} heads of {subject.name}: "
        f"{', '.join(map(str, going))}.",
        f"Parameters {before:,} -> {after:,} ({after / before - 1:+.1%}).",
        "## How it was judged",
    ]
    if plan is None:
        return [*told, "The heads were named, and nothing was measured."]
    task, first = plan.sweep.task, plan.orders[0]
    lost = [lost_at(row) for row in plan.chosen.to_dict("records")]
    for row, most in zip(in_points(plan.chosen).to_dict("records"), lost, strict=True):
        change, metric = f"{row['delta']:+.3g}", row["metric"]
        if row["delta_low"] == row["delta_low"]:
            change += f", 95% interval {row['delta_low']:+.3g} to {row['delta_high']:+.3g}"
        told.append(
            f"- {metric}{' after training' if row['healed'] else ''}, in {unit_of(metric)}: "
            f"{row['value'] - row['delta']:.4g} -> {row['value']:.4g} ({change}) on {row['n']:,} "
            f"examples of {Path(task.name).name} ({row['part']}), heads ordered by {first.name}; "
            f"{most}."
        )
    if plan.found is not None:
        told += [one.sentence for one in can_go(plan.curve, plan.goal.max_loss)[:1]]
    if isinstance(task, LanguageModelling) and not task.chat:
        told.append(
            "The loss on plain text says little of chat: look at what it generates before you rely "
            "on it."
        )
    return told


@contextmanager
def _run_at(
    place: OutputFolder | None, task: Task | None, subject: Subject, force: bool
) -> Iterator[Run | None]:
    """The run inside the output folder, cleared of drafts; none for a dry run, or without a task.

    With `force` a run of another model gives way; what is known of this model is measured anew.
    """
    with Run.open(place.run) if place is not None and task is not None else nullcontext() as run:
        for path in [] if place is None else place.leftovers:
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        if run is not None and force:
            bare = bare_table(subject)
            try:
                run.check_subject(bare)
            except RunError:
                run.write_table(bare, replace=True)
                run.drop_journal(JOURNAL)
        yield run


@contextmanager
def _marked(
    place: OutputFolder, subject: Subject, going: Sequence[Head], force: bool
) -> Iterator[bool]:
    """Within the block the folder is marked as unfinished; gives whether its model may be replaced.

    A process that is killed between the model and the last record leaves the mark. The same pruning
    then takes that model for its own; one that was there before, or another pruning, needs `force`.
    """
    what = {"weights": subject.weights_hash, "removed": [str(head) for head in going]}
    mark: Any = None
    with suppress(OSError, ValueError, RecursionError):
        mark = json_decode(InnerPath.file(place.mark).read())
    before = _folder_id(place.model)
    told = mark if isinstance(mark, dict) else {}
    own = told.get("of") == what and told.get("before", before) != before
    if before is not None and not (force or own):
        raise UsageError(place.why_not_replaced)
    if not own:
        place.folder.mkdir(parents=True, exist_ok=True)
        write_bytes(place.mark, json_encode({"of": what, "before": before}).encode())
    try:
        yield force or own
    except BaseException:
        if _folder_id(place.model) == before and not own:  # nothing has changed
            place.mark.unlink(missing_ok=True)
        raise
    place.mark.unlink()


def _folder_id(folder: Path) -> int | None:
    """A number that a folder keeps, and one that takes its name later does not have."""
    return folder.stat().st_ino if folder.exists() else None


def _record(
    run: Run | None,
    subject: Subject,
    plan: Plan | None,
    going: Sequence[Head],
    known: HeadTable | None,
    saved: dict[str, Saved],
    how: dict[str, Any],
) -> pd.DataFrame | None:
    """Write down what was done; gives what heads with a role matter, where roles are known."""
    named = pd.DataFrame({"order": ["heads"], "scope": "all", "step": 1})
    curve = named.assign(removed=",".join(map(str, going))) if plan is None else plan.curve
    table = removal_table(curve, subject.heads)
    if run is None or plan is None:
        return _function(table, known)
    about = provenance.collect(
        model=subject.name,
        revision=subject.revision,
        weights=subject.weights_hash,
        subject=subject.describe(),
        task=plan.sweep.task.describe(),
    )
    settings = {
        **{key: value for key, value in how.items() if key not in ("table", "judge")},
        "goal": str(plan.goal),
        "going": [str(head) for head in plan.going],
        "routes": {what: one.route for what, one in saved.items()},
    }
    run.write_frame("curve", plan.curve)
    # A table without the record beside it is what a killed pruning left.
    kept = run.has_table and (run.path / "run.json").exists()
    old = run.read_table() if kept else HeadTable.of(subject.heads, {}, provenance=about)
    run.write_table(table := old.join(table, replace=True))
    if (function := _function(table, known)) is not None:
        run.write_frame("function", function)
    run.stage("prune").finish(settings, about, plan.notes)
    run.end_journal(JOURNAL)
    return function


def _function(table: HeadTable, known: HeadTable | None) -> pd.DataFrame | None:
    """Whether heads with a role matter, and go later, by the roles that are known."""
    if known is not None and "roles" in known.details and known.heads == table.heads:
        table = known.join(table, replace=True)
    room = plugins.part("agreement") if "roles" in table.details else None
    return None if room is None else room.by_role(table)


@contextmanager
def _warnings_into(notes: list[str]) -> Iterator[None]:
    """What the removal warns of becomes a note."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        yield
    notes += [str(one.message) for one in caught if one.category is UserWarning]
