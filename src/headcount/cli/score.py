"""`headcount score`: how good a model is on a task, and how much each head matters to it."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import partial
from typing import TYPE_CHECKING, Any

import headcount as hc
from headcount import importance, plugins, tasks
from headcount.cli.inputs import TaskArguments
from headcount.cli.options import Json, Model, RunArguments, loaded
from headcount.cli.printing import output, print_json, print_notes, print_ranking, print_run
from headcount.errors import StatsError, UsageError
from headcount.models import LoadOptions
from headcount.records import (
    EngineOptions,
    WorkOptions,
    check_head_set,
    heads_named,
    option,
    provenance,
)

if TYPE_CHECKING:
    from headcount.records import Engine

#: Whole sets of heads off together, where a room has that.
KNOCKOUT = "knockout"

_scoring = partial(option, panel="Scoring every head")
_way = partial(_scoring, key_of="scoring")


@dataclass(frozen=True)
class ScoreArguments:
    """What is scored, and how."""

    shut: str | None = option(
        None,
        "HEADS",
        "Heads to switch off, with commas between: enc.5.3, a layer (enc.5), a stack (cross) or a "
        "range (enc.0-2); the difference is tested.",
    )
    by: str | None = _scoring(
        None,
        "SCORES",
        "Score every head by gradient, ablation, contribution, relevance, or a column; "
        "several with commas between. Or take whole roles away: knockout.",
    )
    per: str | None = _way(
        None,
        "WHAT",
        "gradient: absolute value per example, token or batch; shares: per step or sentence.",
    )
    normalize: str | None = _way(
        None,
        "HOW",
        "gradient: over the l2 norm of its layer (layer), or as it is (none).",
        choices=("layer", "none"),
    )
    steps: str | None = _way(
        None,
        "N",
        "gradient: over so many gates from closed to open (integrated; 8 are usual).",
    )
    mode: str | None = _way(
        None, "MODE", "ablation: what stands in a head's place: zero, mean, uniform or resample."
    )
    unit: str | None = _way(
        None,
        "WHAT",
        "ablation: one head at a time (head), all but one of a layer (others), or whole layers "
        "(layer).",
    )
    metric: str | None = _way(
        None, "WHICH", "ablation: the teacher-forced loss, or the task's own metric (task)."
    )
    rule: str | None = _way(
        None, "NAME", "relevance: the rule, z+, ding or alpha-beta; 'z+ extended' for any block."
    )
    predictions: str | None = _way(
        None, "N", "shares: how many predictions of a text are explained, drawn by --seed; all."
    )
    restrict: str | None = _way(
        None, "FIRST+LAST", "restriction: the tokens that a head may still see, e.g. 16+240."
    )

    @property
    def how(self) -> dict[str, Any]:
        """What is of one score or another."""
        own = [one.name for one in fields(self) if one.metadata.get("key_of") == "scoring"]
        return {key: getattr(self, key) for key in own}

    def check(self, target: RunArguments) -> None:
        """Refuse, before anything is read or loaded, what cannot go together."""
        if self.shut is not None:
            check_head_set(self.shut)
        if self.by is None:
            given = {f"scoring {key}": value for key, value in self.how.items()}
            for key, value in {**given, "out": target.out}.items():
                if value is not None:
                    raise UsageError(
                        f"--{key} is for scores of heads; say which, e.g. --by gradient,confidence."
                    )
            return
        if self.by == KNOCKOUT:
            self._check_knockout(target)
            return
        if self.shut is not None:
            raise UsageError(
                "Both --shut and --by were given; switch heads off to see what they cost together, "
                "or score every head by itself."
            )
        importance.options_by_score(importance.read_names(self.by), self.how)

    def _check_knockout(self, target: RunArguments) -> None:
        """Knock-outs take sets of heads, from --shut or from the verdicts of a run."""
        for key, value in self.how.items():
            if value is not None and key not in ("mode", "metric"):
                raise UsageError(f"--scoring {key} is no option of --by {KNOCKOUT}; leave it out.")
        if self.shut is None and target.out is None:
            raise UsageError(
                f"--by {KNOCKOUT} takes whole roles away: name a run with verdicts (-o run/, after "
                "headcount report or survey), or the heads (--shut enc.0.7,enc.1)."
            )


def score_command(
    model: Model,
    task: TaskArguments,
    asked: ScoreArguments,
    target: RunArguments,
    work: WorkOptions,
    engine: EngineOptions,
    load: LoadOptions,
    json: Json = False,
) -> None:
    """Score the model on a task, or with --by each of its heads.

    [dim]headcount score translator --task translation:sample,metric=bleu --shut enc.0.7[/dim]
    [dim]headcount score translator --task translation:sample --by gradient,confidence -o run/[/dim]
    [dim]headcount score ./my-classifier --task glue:sst2:glue/SST-2[/dim]
    """
    asked.check(target)
    where = engine.made()
    if asked.by is None and where.remote:
        raise UsageError("--engine ray scores heads; say by what, e.g. --by ablation.")
    examples = task.build(work)
    subject = loaded(model, load)
    if asked.by is None:
        off = heads_named(asked.shut, subject.heads) if asked.shut else []
        _evaluate(subject, examples, off, work, json)
    elif asked.by == KNOCKOUT:
        knock_out = plugins.get("parts", KNOCKOUT)
        knock_out(subject, examples, asked, target, work, where, json)
    else:
        _score_heads(subject, examples, asked, target, work, where, json)


# --- The whole model, and without some heads ----------------------------------------------------


def _evaluate(
    subject: hc.Subject, task: tasks.Task, off: list[hc.Head], work: WorkOptions, json: bool
) -> None:
    """Evaluate the model whole and, where heads are named, with these switched off; print both."""
    seed = work.seed or 0
    whole = _evaluated(subject, task, work.examples, [])
    without = _evaluated(subject, task, work.examples, off) if off else None
    change: tasks.Comparison | None = None
    untested: list[str] = []
    if without is not None:
        try:
            change = without.against(whole, seed=seed)
        except StatsError as error:
            untested = [f"The difference is not tested. {error}"]
    about = provenance.collect(
        **whole.provenance, subject=subject.describe(), limit=work.limit, seed=work.seed
    )
    value, low, high = whole.interval(seed=seed)
    if json:
        found: dict[str, Any] = {
            "metric": whole.name,
            "value": value,
            "low": low,
            "high": high,
            "examples": len(whole),
            "signature": whole.signature,
            "notes": list(whole.notes),
        }
        if without is not None:
            lost = {"value": without.value - whole.value} if change is None else change._asdict()
            shut = [str(head) for head in off]
            found["without"] = {"shut": shut, "value": without.value, "difference": lost}
        print_json(found | {"provenance": about})
        return
    console = output()
    console.print(f"{whole.name} {value:.4g} [{low:.4g}, {high:.4g}] over {len(whole):,} examples")
    if without is not None:
        lost_text = f"{without.value - whole.value:+.3g}"
        if change is not None:
            between = f"[{change.low:+.3g}, {change.high:+.3g}]"
            lost_text += f" {between}, p = {change.p:.3g} ({change.test})"
        console.print(f"{without.name} {without.value:.4g} without {_listed(off)}: {lost_text}")
    if whole.signature:
        console.print(f"sacreBLEU {whole.signature}", style="dim")
    console.print(f"{about['task']['data']}; {subject!r}", style="dim")
    print_notes([*subject.notes, *whole.notes, *untested])


def _evaluated(
    subject: hc.Subject, task: Any, batch_size: int, off: list[hc.Head]
) -> tasks.Outcome:
    with hc.valve(subject, dict.fromkeys(off, 0.0)):
        outcome: tasks.Outcome = task.evaluate(subject, batch_size=batch_size)
    return outcome


def _listed(heads: list[hc.Head]) -> str:
    return ", ".join(str(head) for head in heads)


# --- Every head ---------------------------------------------------------------------------------


def _score_heads(
    subject: hc.Subject,
    task: tasks.Task,
    asked: ScoreArguments,
    target: RunArguments,
    work: WorkOptions,
    engine: Engine,
    json: bool,
) -> None:
    names = importance.read_names(str(asked.by))
    table = hc.score(
        subject,
        task,
        names,
        run=target.out,
        replace=target.replace,
        convention=work.convention,
        batch_size=work.examples,
        seed=work.seed,
        engine=engine,
        compare=False,
        **asked.how,
    )
    columns = [importance.column_of(name, asked.how) for name in names]
    room = plugins.part("agreement")
    frame = None if room is None else room.compared(table, columns)
    if target.out is not None and frame is not None:
        with hc.Run.open(target.out) as run:
            run.write_frame("agreement", frame)
    if json:
        rows = [] if frame is None else frame.to_dict("records")
        print_json(table.to_dict() | {"by": names, "agreement": rows})
        return
    for name in columns:
        print_ranking(table, name)
    for line in [] if room is None or frame is None else room.agreement_sentences(frame):
        output().print(line)
    output().print(f"{len(task):,} examples of {task.name}; {subject!r}", style="dim")
    print_notes([*subject.notes, *_notes(table, columns, task)])
    print_run(target.out)


def _notes(table: hc.HeadTable, columns: list[str], task: Any) -> list[str]:
    """Remarks on these columns, and which others are of other examples or other texts."""
    origins = {name: table.origins.get(name, table.provenance) for name in table.names}
    notes = [remark for name in columns for remark in origins[name].get("remarks", ())]
    for name in dict.fromkeys([*columns, *importance.importance_columns(table)]):
        about = origins[name]
        other = about.get("task", {})
        if other.get("hash", task.hash) != task.hash:
            of = f"{other['examples']:,} of {other['data']}"
            notes.append(f"{name} was measured on other examples ({of}).")
        elif not other and about.get("corpus", task.name) != task.name:
            notes.append(f"{name} was measured on other texts ({about['corpus']}).")
    return list(dict.fromkeys(notes))
