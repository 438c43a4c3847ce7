"""`headcount prune`: remove the heads that a task can spare, and save the model that is left."""

from __future__ import annotations

from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from headcount.cli import options
from headcount.cli import prune_options as own
from headcount.cli.loading import loaded
from headcount.cli.progress import bars
from headcount.cli.prune_checks import check_call
from headcount.cli.prune_output import tell
from headcount.cli.task_option import Task, TaskFile, parse_task, read_task
from headcount.models.find import find
from headcount.prune_place import Place, place_at

if TYPE_CHECKING:
    from headcount.prune_run import Pruned
    from headcount.subject import Subject

__all__ = ["prune"]


def prune(
    model: options.Model,
    task: Task = None,
    task_file: TaskFile = None,
    max_loss: own.MaxLoss = None,
    keep: own.Keep = None,
    drop_share: own.DropShare = None,
    heads: own.Heads = None,
    gates: own.Gates = False,
    by: own.By = "gradient",
    normalize: own.Normalize = None,
    scores: own.Scores = None,
    step: own.Step = 10.0,
    exact: own.Exact = False,
    at_least: own.AtLeast = 0,
    stacks: own.Stacks = None,
    by_stack: own.ByStack = False,
    price: own.Lambda = None,
    gate_steps: own.GateSteps = 500,
    learn: own.Learn = "all",
    heal: own.Heal = False,
    heal_steps: own.HealSteps = 200,
    lr: own.LearningRate = 5e-5,
    train: own.TrainTask = None,
    out: own.Out = None,
    dry_run: own.DryRun = False,
    export: own.Export = None,
    force: own.Force = False,
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
    """Remove heads of MODEL that a task can spare, and save the model that is left.

    Heads are chosen on one half of the examples and judged on the other. A command that was
    killed goes on where it was when it is run again.

    [dim]headcount prune translator --task translation:sample --max-loss 0.5 -o small/[/dim]
    [dim]headcount prune ./my-classifier --task glue:sst2:SST-2 --drop-share 0.5 -o small/[/dim]
    [dim]headcount prune translator --heads enc.0.7,cross.5 -o small/[/dim]
    """
    check_call(dict(locals()), _usual())
    find(model)
    place = None if dry_run or out is None else place_at(out, force=force)
    table, learned = _table(scores), None if train is None else parse_task(train).looked_up()
    examples = read_task(task, task_file).build() if task or task_file else None
    if examples is not None and limit is not None:
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
    lessons = None if learned is None else learned.build()
    learning = {"lr": lr, "task": lessons, "batch_size": batch_size, "seed": seed or 0}
    how: dict[str, Any] = {"stacks": options.names(stacks), "keep": keep}
    how |= {"convention": convention}
    if gates:
        how |= {"price": price, "train": learn}
    else:
        how |= {"by": by, "table": table, "step": step, "exact": exact}
        how |= {"at_least": at_least, "by_stack": by_stack}
        how |= {"max_loss": max_loss, "drop_share": drop_share, "normalize": normalize}
    done = _pruned(
        subject,
        examples,
        place,
        heads=heads,
        gates={"steps": gate_steps, **learning} if gates else None,
        heal={"steps": heal_steps, **learning} if heal else None,
        export=export,
        force=force,
        batch_size=batch_size,
        seed=seed or 0,
        **({} if heads is not None else how),
    )
    tell(done, subject, place, json=json)


def _usual() -> dict[str, Any]:
    """What every option is where nothing was said."""
    return {name: one.default for name, one in signature(prune).parameters.items()}


def _pruned(
    subject: Subject,
    task: Any,
    place: Place | None,
    gates: dict[str, Any] | None,
    heal: dict[str, Any] | None,
    **how: Any,
) -> Pruned:
    """Do the work, with bars; Ctrl-C says what was kept."""
    from headcount.prune_run import prune_run
    from headcount.prune_trained import Training

    how |= {"gates": None if gates is None else Training(**gates)}
    how |= {"heal": None if heal is None else Training(**heal)}
    try:
        with bars("examples") as progress:
            return prune_run(subject, task, place=place, progress=progress, announce=_say, **how)
    except KeyboardInterrupt:
        kept = "Interrupted; nothing was written."
        if place is not None and place.is_under_way:
            kept = (
                f"Interrupted; what was done is in {place.folder}/, and the same command goes on."
            )
        raise KeyboardInterrupt(kept) from None


def _table(scores: Path | None) -> Any:
    """The columns of another run, where one was named."""
    if scores is None:
        return None
    from headcount.table import HeadTable

    return HeadTable.load(scores)


def _say(sentence: str) -> None:
    """Tell what to expect, before the long work."""
    typer.echo(sentence, err=True)
