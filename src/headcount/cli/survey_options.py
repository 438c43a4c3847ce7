"""Options of `headcount survey` alone: what it reads, what it measures, where it writes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from headcount.cli.options import one_of, positive

__all__ = [
    "Columns",
    "Families",
    "Format",
    "Long",
    "MaxLength",
    "OffsetMass",
    "Out",
    "OwnOutput",
    "Pairs",
    "Patterns",
    "Replace",
    "Stacks",
    "Text",
]

Text = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="Sentences: .txt (one a line), .conllu, .tsv (pairs), also .gz, .xz and .bz2; "
        "- for standard input; `sample` for the bundled sentences.",
        show_default=False,
    ),
]
Pairs = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="Pairs, two columns with a tab between: source and target for a translator, two "
        "texts for an encoder; `sample` for the bundled English-German pairs.",
        show_default=False,
    ),
]
Out = Annotated[
    Path | None,
    typer.Option(
        "--out", "-o", metavar="DIR", help="Run directory to write; made where there is none."
    ),
]
Columns = Annotated[
    str | None,
    typer.Option(metavar="NAMES", help="Columns to measure and show, separated by commas."),
]
Stacks = Annotated[
    str | None,
    typer.Option(metavar="NAMES", help="Stacks to look at: enc, dec, cross; separated by commas."),
]
Format = Annotated[
    str | None,
    typer.Option(
        metavar="KIND",
        callback=one_of("txt", "tsv", "csv", "conllu", "conll", "jsonl"),
        help="What the input is, if its name does not tell: txt, tsv, csv, conllu, conll or jsonl.",
    ),
]
MaxLength = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        callback=positive,
        help="Longest input in tokens; by default what the model takes.",
    ),
]
Long = Annotated[
    str,
    typer.Option(
        metavar="HOW",
        callback=one_of("window", "truncate", "error"),
        help="What to do with longer sentences: window, truncate or error.",
    ),
]
OwnOutput = Annotated[
    bool,
    typer.Option("--own-output", help="Translate first, and survey the model's own translations."),
]
OffsetMass = Annotated[
    bool,
    typer.Option("--offset-mass", help="Also keep the whole distribution of mass by offset."),
]
Families = Annotated[
    bool,
    typer.Option(
        "--families",
        help="Also measure how unlike every two heads are: nearest heads, clusters, a map "
        "(pairs.npz). Keeps the maps of one batch of all layers in memory.",
    ),
]
Patterns = Annotated[
    bool,
    typer.Option(
        "--patterns",
        help="Also tell the pattern of every map (vertical, diagonal, both, block, heterogeneous).",
    ),
]
Replace = Annotated[
    bool,
    typer.Option("--replace", help="Start the run directory's table anew."),
]
