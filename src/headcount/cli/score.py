"""`headcount score`: how good a model is on a task, and how much each head matters to it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headcount.cli import options
from headcount.cli.inputs import TaskFile, TaskOption, read_task
from headcount.cli.options import loaded, one_of
from headcount.cli.output import bar, output, print_json, print_notes
from headcount.errors import UsageError
from headcount.records import check_head_set, heads_named

if TYPE_CHECKING:
    from headcount.models import Subject
    from headcount.records import HeadTable


# --- Options of `headcount score` that say how heads are scored ---------------------------------

_HEADS = "Scoring every head"

By = Annotated[
    str | None,
    typer.Option(
        metavar="SCORES",
        help="Score every head by gradient, ablation, relevance, or a column such as confidence; "
        "several with commas between.",
        rich_help_panel=_HEADS,
        show_default=False,
    ),
]
Out = Annotated[
    Path | None,
    typer.Option(
        "--out",
        "-o",
        metavar="DIR",
        help="Run directory to write; made where there is none, joined where there is one.",
        rich_help_panel=_HEADS,
    ),
]
Replace = Annotated[
    bool,
    typer.Option("--replace", help="Start the run directory's table anew.", rich_help_panel=_HEADS),
]
Per = Annotated[
    str | None,
    typer.Option(
        metavar="WHAT",
        help="gradient: absolute value per example, token or batch; relevance: per step or "
        "sentence.",
        rich_help_panel=_HEADS,
    ),
]
Normalize = Annotated[
    str | None,
    typer.Option(
        metavar="HOW",
        callback=one_of("layer", "none"),
        help="gradient: over the l2 norm of its layer (layer), or as it is (none).",
        rich_help_panel=_HEADS,
    ),
]
Mode = Annotated[
    str | None,
    typer.Option(
        metavar="MODE",
        help="ablation: what stands in a head's place: zero, mean, uniform or resample.",
        rich_help_panel=_HEADS,
    ),
]
Unit = Annotated[
    str | None,
    typer.Option(
        metavar="WHAT",
        help="ablation: one head at a time (head), all but one of a layer (others), or whole "
        "layers (layer).",
        rich_help_panel=_HEADS,
    ),
]
Metric = Annotated[
    str | None,
    typer.Option(
        metavar="WHICH",
        help="ablation: the teacher-forced loss, or the task's own metric (task).",
        rich_help_panel=_HEADS,
    ),
]
Rule = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="relevance: the rule of propagation, default, ding, z+ or alpha-beta.",
        rich_help_panel=_HEADS,
    ),
]
Shut = Annotated[
    str | None,
    typer.Option(
        metavar="HEADS",
        help="Heads to shut, with commas between: enc.5.3, a layer (enc.5), a stack (cross) or a "
        "range (enc.0-2); the difference is tested.",
        show_default=False,
    ),
]


# --- `headcount score` --------------------------------------------------------------------------


def score_command(
    model: options.Model,
    task: TaskOption = None,
    task_file: TaskFile = None,
    shut: Shut = None,
    by: By = None,
    out: Out = None,
    replace: Replace = False,
    per: Per = None,
    normalize: Normalize = None,
    mode: Mode = None,
    unit: Unit = None,
    metric: Metric = None,
    rule: Rule = None,
    convention: options.Convention = "headcount",
    limit: options.Limit = None,
    seed: options.Seed = None,
    batch_size: options.BatchSize = 16,
    device: options.Device = "auto",
    dtype: options.Dtype = "auto",
    revision: options.Revision = None,
    allow_bin: options.AllowBin = False,
    trust_remote_code: options.RemoteCode = False,
    tokenizer: options.Tokenizer = None,
    json: options.Json = False,
) -> None:
    """Score MODEL on a task, or with --by every head of it.

    [dim]headcount score translator --task translation:sample,metric=bleu --shut enc.0.7[/dim]
    [dim]headcount score translator --task translation:sample --by gradient,confidence -o run/[/dim]
    [dim]headcount score ./my-classifier --task glue:sst2:glue/SST-2[/dim]
    """
    how: dict[str, Any] = {"per": per, "normalize": normalize}
    how |= {"mode": mode, "unit": unit, "metric": metric, "rule": rule}
    _check(by, shut, out, how)
    examples = read_task(task, task_file).build()
    if limit is not None:
        examples = examples.limit(limit, seed)
    subject = loaded(
        model,
        device=device,
        dtype=dtype,
        revision=revision,
        allow_bin=allow_bin,
        trust_remote_code=trust_remote_code,
        tokenizer=tokenizer,
    )
    if by is None:
        from headcount.cli.inputs import evaluate

        heads = heads_named(shut or "", subject.heads) if shut else []
        evaluate(subject, examples, heads, batch_size=batch_size, limit=limit, seed=seed, json=json)
        return
    how |= {"convention": convention, "batch_size": batch_size, "seed": seed, "replace": replace}
    _score_heads(subject, examples, by, out, how, json)


def _check(by: str | None, shut: str | None, out: Path | None, how: dict[str, Any]) -> None:
    """Refuse, before anything is read or loaded, what cannot go together."""
    if shut is not None:
        check_head_set(shut)
    if by is None:
        given = [f"--{key}" for key, value in {**how, "out": out}.items() if value is not None]
        if given:
            raise UsageError(
                f"{given[0]} is for scores of heads; say which, e.g. --by gradient,confidence."
            )
        return
    if shut is not None:
        raise UsageError(
            "Both --shut and --by were given; shut heads to see what they cost together, or "
            "score every head by itself."
        )
    from headcount.importance import options_by_score, read_names

    options_by_score(read_names(by), how)


def _score_heads(
    subject: Subject, task: Any, by: str, out: Path | None, how: dict[str, Any], json: bool
) -> None:
    from headcount.importance import column_of, compared, name_first, read_names
    from headcount.importance import score as measure
    from headcount.records import Run

    names = read_names(by)
    with bar("Scoring", "examples") as progress:
        how |= {"progress": name_first(progress), "announce": _say, "compare": False}
        table = measure(subject, task, names, run=out, **how)
    columns = [column_of(name, how) for name in names]
    frame = compared(table, columns)
    if out is not None and frame is not None:
        with Run.open(out) as run:
            run.write_frame("agreement", frame)
    if json:
        rows = [] if frame is None else frame.to_dict("records")
        print_json(table.to_dict() | {"by": names, "agreement": rows})
        return
    _print(table, columns, frame)
    output().print(f"{len(task):,} examples of {task.name}; {subject!r}", style="dim")
    notes = [*_remarks(table, columns), *_other_examples(table, columns, task)]
    print_notes([*subject.notes, *notes])
    if out is not None:
        output().print(f"Wrote {out}/ (headcount ls {out} lists what it holds).")


def _remarks(table: HeadTable, columns: list[str]) -> list[str]:
    """What was noted while the columns were measured, each once."""
    origins = [table.origins.get(name, table.provenance) for name in columns]
    return list(dict.fromkeys(told for one in origins for told in one.get("remarks", ())))


def _other_examples(table: HeadTable, columns: list[str], task: Any) -> list[str]:
    """Which scores are compared with these, though they are of other examples or other texts."""
    from headcount.importance import importance_columns

    told = []
    for name in dict.fromkeys([*columns, *importance_columns(table)]):
        about = table.origins.get(name, table.provenance)
        other = about.get("task", {})
        if other.get("hash", task.hash) != task.hash:
            of = f"{other['examples']:,} of {other['data']}"
            told.append(f"{name} was measured on other examples ({of}).")
        elif not other and about.get("corpus", task.name) != task.name:
            told.append(f"{name} was measured on other texts ({about['corpus']}).")
    return told


def _say(sentence: str) -> None:
    """Tell what to expect, before the long work."""
    typer.echo(sentence, err=True)


def _print(table: HeadTable, columns: list[str], frame: Any) -> None:
    from headcount.cli.output import print_agreement, print_ranking

    for name in columns:
        print_ranking(table, name)
    if frame is not None:
        print_agreement(frame)
