"""`headcount prune`: remove the heads that a task can spare, and save the model that is left."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from headcount.cli import options
from headcount.cli import prune_options as own
from headcount.cli.loading import loaded
from headcount.cli.progress import bars
from headcount.cli.prune_output import tell
from headcount.cli.task_option import Task, TaskFile, parse_task, read_task
from headcount.errors import UsageError
from headcount.head_sets import check_head_set
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
    goals = {"--max-loss": max_loss, "--keep": keep, "--drop-share": drop_share, "--heads": heads}
    _check(goals | {"--lambda": price}, gates, task or task_file, out, dry_run, export)
    _check_learning(gates, heal, price, train, task or task_file)
    place = None if dry_run or out is None else place_at(out, force=force)
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
    lessons = None if train is None else parse_task(train).build()
    learning = {"lr": lr, "task": lessons, "batch_size": batch_size, "seed": seed or 0}
    how: dict[str, Any] = {"stacks": options.names(stacks), "keep": keep}
    how |= {"convention": convention}
    if gates:
        how |= {"price": price, "train": learn}
    else:
        how |= {"by": by, "table": _table(scores), "step": step, "exact": exact}
        how |= {"at_least": at_least, "by_stack": by_stack}
        how |= {"max_loss": max_loss, "drop_share": drop_share}
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
                f"Interrupted; what was measured is in {place.run}/, and the same command goes on."
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


def _check(
    goals: dict[str, Any],
    gates: bool,
    task: object,
    out: Path | None,
    dry_run: bool,
    export: str | None,
) -> None:
    """Refuse, before anything is read or loaded, what cannot go together."""
    given = [name for name, value in goals.items() if value is not None]
    if len(given) != 1:
        which = f"{' and '.join(given)} were both given" if given else "No goal was given"
        raise UsageError(f"{which}; say how far to go with one of {', '.join(goals)}.")
    if gates and given[0] not in ("--lambda", "--keep"):
        raise UsageError(f"--gates goes with --lambda or --keep, not with {given[0]}.")
    if goals["--heads"] is not None:
        check_head_set(goals["--heads"])
    elif task is None:
        raise UsageError(
            f"{given[0]} needs a task to choose heads by, e.g. --task translation:test.tsv; "
            "only --heads does without."
        )
    if (out is None) != dry_run:
        which = "Both -o and --dry-run were" if dry_run else "Neither -o nor --dry-run was"
        raise UsageError(f"{which} given; name a folder to write (-o DIR), or only look.")
    if export is not None and dry_run:
        raise UsageError("--export writes a folder, and --dry-run writes nothing; leave one out.")


def _check_learning(
    gates: bool, heal: bool, price: float | None, train: str | None, task: object
) -> None:
    """Refuse options of a training that is not asked for, or has nothing to learn from."""
    if price is not None and not gates:
        raise UsageError("--lambda is the price of gates; add --gates.")
    if train is not None and not (gates or heal):
        raise UsageError("--train is what gates or healing learn from; add --gates or --heal.")
    if heal and task is None:
        raise UsageError(
            "--heal needs a task to learn from and to be judged by, e.g. --task translation:f.tsv."
        )
