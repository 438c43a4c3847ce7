"""Options of the roles: what heads are judged by, and what is put beside them."""

from __future__ import annotations

from typing import Annotated

import typer

from headcount.cli.options import one_of, positive

__all__ = [
    "Arguments",
    "Control",
    "Coref",
    "Frequencies",
    "Parser",
    "Relations",
    "Roles",
    "Treebank",
    "Twins",
    "WordRows",
]

_PANEL = "What heads do (roles)"

Treebank = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="Sentences with trees, .conllu or .conll: which heads follow which relation. Serves "
        "as the text where no other is given; `sample` for the bundled one.",
        rich_help_panel=_PANEL,
        show_default=False,
    ),
]
Coref = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="Coreference: .jsonl with sents and clusters, .conllu with Entity=, or GAP's .tsv; "
        "`sample` for the bundled one.",
        rich_help_panel=_PANEL,
        show_default=False,
    ),
]
Arguments = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="Predicates and their arguments: .jsonl with tokens and preds.",
        rich_help_panel=_PANEL,
        show_default=False,
    ),
]
Parser = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Make a treebank of the text: a .udpipe file, or an installed spaCy pipeline.",
        rich_help_panel=_PANEL,
        show_default=False,
    ),
]
Roles = Annotated[
    bool,
    typer.Option(
        "--roles",
        help="Judge heads also without any of the files above.",
        rich_help_panel=_PANEL,
    ),
]
Control = Annotated[
    str | None,
    typer.Option(
        metavar="KIND",
        callback=one_of("random-init", "random-but-embeddings"),
        help="Do the same with a twin of random weights, and put it beside every role: "
        "random-init, or random-but-embeddings.",
        rich_help_panel=_PANEL,
        show_default=False,
    ),
]
Twins = Annotated[
    int,
    typer.Option(
        "--twins",
        metavar="N",
        callback=positive,
        help="How many twins --control takes the mean of.",
        rich_help_panel=_PANEL,
    ),
]
WordRows = Annotated[
    str | None,
    typer.Option(
        metavar="HOW",
        callback=one_of("mean", "first", "max"),
        help="How the rows of a word's pieces become one: mean, first or max; by default what "
        "--convention says.",
        rich_help_panel=_PANEL,
        show_default=False,
    ),
]
Relations = Annotated[
    str | None,
    typer.Option(
        metavar="NAMES",
        help="Relations to test, separated by commas; by default all that occur.",
        rich_help_panel=_PANEL,
        show_default=False,
    ),
]
Frequencies = Annotated[
    str | None,
    typer.Option(
        "--word-frequencies",
        metavar="WHOSE",
        help="How rare a token is: those of the corpus (by default), wordfreq or wordfreq:de, or a "
        "file with a word, a tab and its count on each line.",
        rich_help_panel=_PANEL,
        show_default=False,
    ),
]
