"""`headcount prune`: remove the heads that a task can spare, and save the model that is left."""

from __future__ import annotations

import math
from collections.abc import Mapping
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headcount.cli import options
from headcount.cli.inputs import TaskFile, TaskOption, parse_task, read_task
from headcount.cli.options import loaded, names, one_of, positive
from headcount.cli.output import bar
from headcount.cli.prune_output import print_pruning
from headcount.errors import UsageError
from headcount.models import find
from headcount.pruning import OutputFolder, output_folder
from headcount.records import check_head_set, check_once, check_stack

if TYPE_CHECKING:
    from headcount.models import Subject
    from headcount.pruning import Pruned


# --- Options of `headcount prune` ---------------------------------------------------------------

_GOAL = "How far to go (one of these)"
_ORDER = "Who goes first"
_LEARN = "Learning (gates, healing)"
_RESULT = "The result"

MaxLoss = Annotated[
    float | None,
    typer.Option(
        metavar="POINTS",
        help="Remove as much as surely (95%, on held-out examples) loses no more than so many "
        "points: BLEU or chrF points, hundredths of accuracy, F1 and correlations, nats of loss.",
        rich_help_panel=_GOAL,
        show_default=False,
    ),
]
Keep = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        callback=positive,
        help="Leave so many heads, of --stacks where these are named.",
        rich_help_panel=_GOAL,
        show_default=False,
    ),
]
DropShare = Annotated[
    float | None,
    typer.Option(
        metavar="SHARE",
        help="Remove so large a share of the heads, e.g. 0.5.",
        rich_help_panel=_GOAL,
        show_default=False,
    ),
]
Heads = Annotated[
    str | None,
    typer.Option(
        metavar="HEADS",
        help="Remove these, with commas between: enc.5.3, a layer (enc.5) or a range (enc.0-2); "
        "a task is not needed.",
        rich_help_panel=_GOAL,
        show_default=False,
    ),
]
By = Annotated[
    str,
    typer.Option(
        metavar="SCORES",
        help="gradient, ablation, relevance, random, or a column such as confidence; of several, "
        "with commas between, the first decides and the others are drawn beside it.",
        rich_help_panel=_ORDER,
    ),
]
Normalize = Annotated[
    str | None,
    typer.Option(
        metavar="HOW",
        callback=one_of("layer", "none"),
        help="gradient: over the l2 norm of its layer (layer; the convention paper does), or as "
        "it is (none).",
        rich_help_panel=_ORDER,
        show_default=False,
    ),
]
Scores = Annotated[
    Path | None,
    typer.Option(
        metavar="RUN",
        help="A run directory whose columns --by may name.",
        rich_help_panel=_ORDER,
        show_default=False,
    ),
]
Step = Annotated[
    float,
    typer.Option(
        metavar="PERCENT", help="Heads that go at each step of the curve.", rich_help_panel=_ORDER
    ),
]
Exact = Annotated[
    bool,
    typer.Option(
        "--exact",
        help="Score again before every step, without the heads that are gone.",
        rich_help_panel=_ORDER,
    ),
]
AtLeast = Annotated[
    int,
    typer.Option(
        metavar="N",
        min=0,
        help="Leave so many heads in every layer of every stack.",
        rich_help_panel=_ORDER,
    ),
]
Stacks = Annotated[
    str | None,
    typer.Option(
        metavar="NAMES",
        help="Take heads from these stacks only: enc, dec, cross.",
        rich_help_panel=_ORDER,
        show_default=False,
    ),
]
ByStack = Annotated[
    bool,
    typer.Option(
        "--by-stack",
        help="Also draw the curve of each stack by itself.",
        rich_help_panel=_ORDER,
    ),
]
Out = Annotated[
    Path | None,
    typer.Option(
        "--out",
        "-o",
        metavar="DIR",
        help="Folder to write: model/ (loads again), run/ (scores, curve) and curve.svg.",
        rich_help_panel=_RESULT,
        show_default=False,
    ),
]
DryRun = Annotated[
    bool,
    typer.Option(
        "--dry-run",
        help="Tell what would go and what it costs, and write nothing.",
        rich_help_panel=_RESULT,
    ),
]
Export = Annotated[
    str | None,
    typer.Option(
        metavar="WHAT",
        callback=one_of("onnx", "zeros"),
        help="Write also DIR/onnx, or DIR/zeros: the old size, with zeros for heads.",
        rich_help_panel=_RESULT,
        show_default=False,
    ),
]
Force = Annotated[
    bool,
    typer.Option("--force", help="Replace a model that is there.", rich_help_panel=_RESULT),
]

Gates = Annotated[
    bool,
    typer.Option(
        "--gates",
        help="Learn which heads go: gates close while the model trains; with --lambda or --keep.",
        rich_help_panel=_GOAL,
    ),
]
Lambda = Annotated[
    float | None,
    typer.Option(
        "--lambda",
        metavar="X",
        help="The price of an open gate; the higher, the fewer heads are left.",
        rich_help_panel=_LEARN,
        show_default=False,
    ),
]
GateSteps = Annotated[
    int,
    typer.Option(
        metavar="N", callback=positive, help="Steps that gates learn.", rich_help_panel=_LEARN
    ),
]
Learn = Annotated[
    str,
    typer.Option(
        metavar="WHAT",
        help="Weights that learn with the gates: all, gates (none), enc or dec.",
        rich_help_panel=_LEARN,
    ),
]
Heal = Annotated[
    bool,
    typer.Option(
        "--heal",
        help="Train what is left for a while, taught by the whole model.",
        rich_help_panel=_LEARN,
    ),
]
HealSteps = Annotated[
    int,
    typer.Option(metavar="N", callback=positive, help="Steps of healing.", rich_help_panel=_LEARN),
]
LearningRate = Annotated[
    float,
    typer.Option(
        "--lr",
        metavar="X",
        help="Learning rate of weights.",
        rich_help_panel=_LEARN,
    ),
]
TrainTask = Annotated[
    str | None,
    typer.Option(
        "--train",
        metavar="TASK",
        help="Learn from another task, written as --task is; by default from the half of the "
        "examples that heads are chosen on.",
        rich_help_panel=_LEARN,
        show_default=False,
    ),
]


# --- Mistakes in a call of `headcount prune` that show before anything is read or loaded --------

_GOALS = ("max_loss", "keep", "drop_share", "heads", "price")
_ORDER_PRUNE_CHECKS = ("by", "normalize", "scores", "step", "exact", "at_least", "by_stack")


def check_call(asked: Mapping[str, Any], usual: Mapping[str, Any]) -> None:
    """Refuse what cannot be or cannot go together; `usual` is what holds where nothing was said."""
    _check_goal(asked)
    _check_values(asked)
    _check_output(asked)
    _check_learning(asked)
    given = [name for name, value in asked.items() if name in usual and value != usual[name]]
    _check_read(asked, given)


def _option(name: str) -> str:
    """What an argument is called on the command line."""
    return "--lambda" if name == "price" else f"--{name.replace('_', '-')}"


def _has_task(asked: Mapping[str, Any]) -> bool:
    return asked["task"] is not None or asked["task_file"] is not None


def _check_goal(asked: Mapping[str, Any]) -> None:
    given = [_option(name) for name in _GOALS if asked[name] is not None]
    if len(given) != 1:
        which = f"{' and '.join(given)} were both given" if given else "No goal was given"
        raise UsageError(
            f"{which}; say how far to go with one of {', '.join(map(_option, _GOALS))}."
        )
    if asked["gates"] and given[0] not in ("--lambda", "--keep"):
        raise UsageError(f"--gates goes with --lambda or --keep, not with {given[0]}.")
    if asked["heads"] is None and not _has_task(asked):
        raise UsageError(
            f"{given[0]} needs a task to choose heads by, e.g. --task translation:test.tsv; "
            "only --heads does without."
        )


def _check_values(asked: Mapping[str, Any]) -> None:
    from headcount.pruning import read_goal, removed_counts

    read_goal(asked["max_loss"], asked["keep"], asked["drop_share"])
    removed_counts(100, asked["step"])
    if asked["heads"] is not None:
        _check_heads(asked["heads"])
    for stack in names(asked["stacks"]) or ():
        check_stack(stack)
    if asked["learn"] not in ("all", "gates", "enc", "dec") and "*" not in asked["learn"]:
        raise UsageError(
            f"--learn is '{asked['learn']}'; choose all, gates, enc or dec, or write names of "
            "weights with a *."
        )
    for name, least in {"price": "0 or more", "lr": "above 0"}.items():
        value = asked[name]
        if value is not None and not (
            math.isfinite(value) and value >= 0 and (value or name != "lr")
        ):
            raise UsageError(f"{_option(name)} is {value:g}; it must be {least}.")


def _check_heads(heads: str) -> None:
    words = check_head_set(heads)
    if not words:
        raise UsageError("--heads names no head; write it as enc.5.3, or several with commas.")
    check_once(words)


def _check_output(asked: Mapping[str, Any]) -> None:
    dry_run = asked["dry_run"]
    if (asked["out"] is None) != dry_run:
        which = "Both -o and --dry-run were" if dry_run else "Neither -o nor --dry-run was"
        raise UsageError(f"{which} given; name a folder to write (-o DIR), or only look.")
    if asked["export"] is not None and dry_run:
        raise UsageError("--export writes a folder, and --dry-run writes nothing; leave one out.")


def _check_learning(asked: Mapping[str, Any]) -> None:
    """Refuse options of a training that is not asked for, or has nothing to learn from."""
    gates, heal = asked["gates"], asked["heal"]
    if asked["price"] is not None and not gates:
        raise UsageError("--lambda is the price of gates; add --gates.")
    if asked["train"] is not None and not (gates or heal):
        raise UsageError("--train is what gates or healing learn from; add --gates or --heal.")
    if heal and not _has_task(asked):
        raise UsageError(
            "--heal needs a task to learn from and to be judged by, e.g. --task translation:f.tsv."
        )


def _check_read(asked: Mapping[str, Any], given: list[str]) -> None:
    """Refuse an option that nothing would read: whoever gave it expects something of it."""
    unread: dict[str, tuple[str, ...]] = {}
    if asked["heads"] is not None:
        unread["with --heads, which names them all"] = (*_ORDER_PRUNE_CHECKS, "stacks")
    if asked["gates"]:
        unread["with --gates, which learn the order"] = _ORDER_PRUNE_CHECKS
    else:
        unread["without --gates"] = ("gate_steps", "learn")
    if not asked["heal"]:
        unread["without --heal"] = ("heal_steps",)
    if not asked["heal"] and not asked["gates"]:
        unread["without --gates or --heal"] = ("lr",)
    for when, unused in unread.items():
        for name in unused:
            if name in given:
                raise UsageError(f"{_option(name)} means nothing {when}; leave it out.")
    if asked["normalize"] is not None and "gradient" not in (names(asked["by"]) or ()):
        raise UsageError(
            "--normalize is of the gradient score; rank --by gradient, or leave it out."
        )


# --- `headcount prune` --------------------------------------------------------------------------


def prune_command(
    model: options.Model,
    task: TaskOption = None,
    task_file: TaskFile = None,
    max_loss: MaxLoss = None,
    keep: Keep = None,
    drop_share: DropShare = None,
    heads: Heads = None,
    gates: Gates = False,
    by: By = "gradient",
    normalize: Normalize = None,
    scores: Scores = None,
    step: Step = 10.0,
    exact: Exact = False,
    at_least: AtLeast = 0,
    stacks: Stacks = None,
    by_stack: ByStack = False,
    price: Lambda = None,
    gate_steps: GateSteps = 500,
    learn: Learn = "all",
    heal: Heal = False,
    heal_steps: HealSteps = 200,
    lr: LearningRate = 5e-5,
    train: TrainTask = None,
    out: Out = None,
    dry_run: DryRun = False,
    export: Export = None,
    force: Force = False,
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
    place = None if dry_run or out is None else output_folder(out, force=force)
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
    print_pruning(done, subject, place, json=json)


def _usual() -> dict[str, Any]:
    """What every option is where nothing was said."""
    return {name: one.default for name, one in signature(prune_command).parameters.items()}


def _pruned(
    subject: Subject,
    task: Any,
    place: OutputFolder | None,
    gates: dict[str, Any] | None,
    heal: dict[str, Any] | None,
    **how: Any,
) -> Pruned:
    """Do the work, with bars; Ctrl-C says what was kept."""
    from headcount.pruning import TrainingOptions, prune_run
    from headcount.report import draw_plan

    how |= {"gates": None if gates is None else TrainingOptions(**gates)}
    how |= {"heal": None if heal is None else TrainingOptions(**heal)}
    try:
        with bar("Pruning", "examples") as progress:
            how |= {"progress": progress, "announce": _say, "draw": draw_plan}
            return prune_run(subject, task, place=place, **how)
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
    from headcount.records import HeadTable

    return HeadTable.load(scores)


def _say(sentence: str) -> None:
    """Tell what to expect, before the long work."""
    typer.echo(sentence, err=True)
