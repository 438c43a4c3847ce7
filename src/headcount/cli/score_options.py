"""Options of `headcount score` that say how heads are scored."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from headcount.cli.options import one_of

__all__ = ["By", "Metric", "Mode", "Normalize", "Out", "Per", "Replace", "Rule", "Shut", "Unit"]

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
