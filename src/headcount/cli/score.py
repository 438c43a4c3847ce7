"""`headcount score`: how good a model is on a task, whole or with heads shut."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from headcount import provenance
from headcount.cli import options
from headcount.cli.loading import loaded
from headcount.cli.output import output, print_json, print_notes
from headcount.cli.progress import bar
from headcount.cli.task_option import Task, TaskFile, read_task
from headcount.errors import StatsError
from headcount.heads import Head, check_heads, parse_heads

if TYPE_CHECKING:
    from headcount.subject import Subject
    from headcount.tasks import Comparison, Outcome

__all__ = ["score"]


def score(
    model: options.Model,
    task: Task = None,
    task_file: TaskFile = None,
    shut: Annotated[
        str | None,
        typer.Option(
            metavar="HEADS",
            help="Heads to shut, separated by commas; the difference is tested.",
            show_default=False,
        ),
    ] = None,
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
    """Score MODEL on a task, whole and with heads shut.

    [dim]headcount score translator --task translation:sample,metric=bleu --shut enc.0.7[/dim]
    [dim]headcount score ./my-classifier --task glue:sst2:glue/SST-2[/dim]
    """
    heads = parse_heads(shut or "")
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
    check_heads(heads, subject.heads if heads else ())
    whole = _evaluated(subject, examples, batch_size, [])
    without = _evaluated(subject, examples, batch_size, heads) if heads else None
    loss, why = _compared(whole, without, seed)
    about = provenance.collect(
        **whole.provenance, subject=subject.describe(), limit=limit, seed=seed
    )
    if json:
        print_json(_told(whole, without, loss, heads, seed) | {"provenance": about})
        return
    _print(whole, without, loss, heads, seed)
    output().print(f"{about['task']['data']}; {subject!r}", style="dim")
    print_notes([*subject.notes, *whole.notes, *why])


def _compared(
    whole: Outcome, without: Outcome | None, seed: int | None
) -> tuple[Comparison | None, list[str]]:
    """The difference, tested; where too few examples allow no test, why there is none."""
    if without is None:
        return None, []
    try:
        return without.against(whole, seed=seed or 0), []
    except StatsError as error:
        return None, [f"The difference is not tested. {error}"]


def _evaluated(subject: Subject, task: Any, batch_size: int, heads: list[Head]) -> Outcome:
    from headcount.wiring import valve

    what = f"Scoring without {_names(heads)}" if heads else "Scoring"
    with bar(what, "examples") as progress, valve(subject, dict.fromkeys(heads, 0.0)):
        outcome: Outcome = task.evaluate(subject, batch_size=batch_size, progress=progress)
    return outcome


def _print(
    whole: Outcome,
    without: Outcome | None,
    loss: Comparison | None,
    heads: list[Head],
    seed: int | None,
) -> None:
    console = output()
    value, low, high = whole.interval(seed=seed or 0)
    console.print(f"{whole.name} {value:.4g} [{low:.4g}, {high:.4g}] over {len(whole):,} examples")
    if without is not None:
        change = f"{without.value - whole.value:+.3g}"
        if loss is not None:
            change += f" [{loss.low:+.3g}, {loss.high:+.3g}], p = {loss.p:.3g} ({loss.test})"
        console.print(f"{without.name} {without.value:.4g} without {_names(heads)}: {change}")
    if whole.signature:
        console.print(f"sacreBLEU {whole.signature}", style="dim")


def _told(
    whole: Outcome,
    without: Outcome | None,
    loss: Comparison | None,
    heads: list[Head],
    seed: int | None,
) -> dict[str, Any]:
    """The same for machines."""
    value, low, high = whole.interval(seed=seed or 0)
    told: dict[str, Any] = {
        "metric": whole.name,
        "value": value,
        "low": low,
        "high": high,
        "examples": len(whole),
        "signature": whole.signature,
        "notes": list(whole.notes),
    }
    if without is not None:
        change = {"value": without.value - whole.value} if loss is None else loss._asdict()
        shut = [str(head) for head in heads]
        told["without"] = {"shut": shut, "value": without.value, "difference": change}
    return told


def _names(heads: list[Head]) -> str:
    return ", ".join(str(head) for head in heads)
