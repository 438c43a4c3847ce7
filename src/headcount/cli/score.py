"""`headcount score`: how good a model is on a task, and how much each head matters to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from headcount.cli import options
from headcount.cli import score_options as own
from headcount.cli.loading import loaded
from headcount.cli.output import output, print_json, print_notes
from headcount.cli.progress import bars
from headcount.cli.task_option import Task, TaskFile, read_task
from headcount.errors import UsageError
from headcount.head_sets import check_head_set, heads_named

if TYPE_CHECKING:
    from pathlib import Path

    from headcount.subject import Subject
    from headcount.table import HeadTable

__all__ = ["score"]


def score(
    model: options.Model,
    task: Task = None,
    task_file: TaskFile = None,
    shut: own.Shut = None,
    by: own.By = None,
    out: own.Out = None,
    replace: own.Replace = False,
    per: own.Per = None,
    normalize: own.Normalize = None,
    mode: own.Mode = None,
    unit: own.Unit = None,
    metric: own.Metric = None,
    rule: own.Rule = None,
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
        from headcount.cli.evaluation import evaluate

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
    from headcount.importance.options import options_by_score, read_names

    options_by_score(read_names(by), how)


def _score_heads(
    subject: Subject, task: Any, by: str, out: Path | None, how: dict[str, Any], json: bool
) -> None:
    from headcount.importance.agreement import compared
    from headcount.importance.options import column_of, read_names
    from headcount.score import score as measure

    names = read_names(by)
    with bars("examples") as progress:
        table = measure(subject, task, names, run=out, progress=progress, announce=_say, **how)
    columns = [column_of(name, how) for name in names]
    frame = compared(table, columns)
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
    from headcount.importance.agreement import importance_columns

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
    from headcount.cli.ranking import print_agreement, print_ranking

    for name in columns:
        print_ranking(table, name)
    if frame is not None:
        print_agreement(frame)
