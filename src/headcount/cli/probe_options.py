"""Options of `headcount probe` alone: what it learns from, what it is asked."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from headcount.cli.options import one_of, positive

__all__ = [
    "Baselines",
    "Epochs",
    "Explain",
    "Kind",
    "Model",
    "Out",
    "Parse",
    "Rate",
    "Replace",
    "Seeds",
    "Test",
    "TrainBatch",
    "Tree",
    "Treebank",
    "Words",
]

_TRAINING = "Training"
_ASKING = "Using a trained probe"

Model = Annotated[
    str | None,
    typer.Argument(
        metavar="MODEL",
        help="A model, as in `headcount survey`; or the folder of a trained probe (-o), by default "
        "the newest here.",
        show_default=False,
    ),
]
Treebank = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="Sentences with trees to learn from (.conllu, .conll); `sample` for the bundled ones.",
        show_default=False,
    ),
]
Test = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="Sentences with trees to test on; by default every fifth of the treebank.",
        show_default=False,
    ),
]
Words = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="Vectors of words, as text (GloVe, word2vec) or .npz; `own` for the model's own input "
        "embeddings. With them the weights of heads depend on the words.",
        show_default=False,
    ),
]
Kind = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        callback=one_of("attention", "words", "distances", "random-init", "right-branching"),
        help="attention, words, or a baseline: distances, random-init, right-branching; by "
        "default attention, and words where --words is given.",
        show_default=False,
    ),
]
Baselines = Annotated[
    bool, typer.Option("--baselines", help="Train every kind, and put them side by side.")
]
Seeds = Annotated[
    int,
    typer.Option(
        metavar="N",
        callback=positive,
        help="Train so often, with seeds counting up; the first is kept.",
        rich_help_panel=_TRAINING,
    ),
]
Rate = Annotated[
    float | None,
    typer.Option(
        "--learning-rate", metavar="X", help="Adam's step.", rich_help_panel=_TRAINING,
        show_default=False,
    ),
]  # fmt: skip
Epochs = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        callback=positive,
        help="Passes over the treebank.",
        rich_help_panel=_TRAINING,
        show_default=False,
    ),
]
TrainBatch = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        callback=positive,
        help="Sentences a training step.",
        rich_help_panel=_TRAINING,
        show_default=False,
    ),
]
Out = Annotated[
    Path | None,
    typer.Option(
        "--out", "-o", metavar="DIR", help="Run directory to write; made where there is none."
    ),
]
Replace = Annotated[bool, typer.Option("--replace", help="Start the run directory's table anew.")]
Parse = Annotated[
    str | None,
    typer.Option(
        metavar="TEXT",
        help="A sentence to parse.",
        rich_help_panel=_ASKING,
        show_default=False,
    ),
]
Tree = Annotated[
    bool,
    typer.Option(
        "--tree/--no-tree",
        help="The best tree, or each word's best head by itself.",
        rich_help_panel=_ASKING,
    ),
]
Explain = Annotated[
    tuple[str, str] | None,
    typer.Option(
        metavar="DEP HEAD",
        help="Which attention heads decided this arc of --parse; words or their numbers, or ROOT.",
        rich_help_panel=_ASKING,
        show_default=False,
    ),
]
