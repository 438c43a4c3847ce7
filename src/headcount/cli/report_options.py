"""Options of `headcount report` alone."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from headcount.cli.options import one_of

__all__ = [
    "Compare",
    "Maps",
    "NoExhibits",
    "Open",
    "Out",
    "Replace",
    "RunDir",
    "Text",
    "Thorough",
    "Treebank",
    "What",
]

_READING = "What to read"
_PAGE = "The page"

What = Annotated[
    str | None,
    typer.Argument(
        metavar="MODEL|RUN",
        help="A model as in other verbs, or a run directory, of which the page is drawn as it "
        "is. Without it: the bundled translator on the bundled sample.",
        show_default=False,
    ),
]
Text = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="Sentences (.txt) or pairs (.tsv); by default the bundled sample.",
        show_default=False,
        rich_help_panel=_READING,
    ),
]
Treebank = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="A treebank (.conllu), so that syntactic roles can be told.",
        show_default=False,
        rich_help_panel=_READING,
    ),
]
RunDir = Annotated[
    Path | None,
    typer.Option(
        "--run",
        metavar="DIR",
        help="Run directory to keep everything in; by default run/, or run-MODEL/.",
        show_default=False,
    ),
]
Out = Annotated[
    Path, typer.Option("--out", "-o", metavar="FILE", help="The page.", rich_help_panel=_PAGE)
]
NoExhibits = Annotated[
    bool,
    typer.Option(
        "--no-exhibits", help="No sentence of the texts in the page.", rich_help_panel=_PAGE
    ),
]
Maps = Annotated[
    str,
    typer.Option(
        metavar="HOW",
        callback=one_of("fine", "coarse", "none"),
        help="How exact maps in the page are: fine, coarse (smaller) or none.",
        rich_help_panel=_PAGE,
    ),
]
Compare = Annotated[
    Path | None,
    typer.Option(
        metavar="RUN",
        help="A second run of the same architecture, to set beside the first.",
        show_default=False,
        rich_help_panel=_PAGE,
    ),
]
Open = Annotated[
    bool, typer.Option("--open", help="Show the page in the browser.", rich_help_panel=_PAGE)
]
Thorough = Annotated[
    bool,
    typer.Option(
        "--thorough",
        help="Take every example, the task's own metric for every head, and a random twin: hours "
        "rather than minutes.",
    ),
]
Replace = Annotated[
    bool, typer.Option("--replace", help="Start the run directory anew, whatever it holds.")
]
