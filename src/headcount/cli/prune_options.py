"""Options of `headcount prune`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from headcount.cli.options import one_of, positive

__all__ = [
    "AtLeast",
    "By",
    "ByStack",
    "DropShare",
    "DryRun",
    "Exact",
    "Export",
    "Force",
    "GateSteps",
    "Gates",
    "Heads",
    "Heal",
    "HealSteps",
    "Keep",
    "Lambda",
    "Learn",
    "LearningRate",
    "MaxLoss",
    "Normalize",
    "Out",
    "Scores",
    "Stacks",
    "Step",
    "TrainTask",
]

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
