"""`headcount show` draws a head or a layer on a sentence; `headcount explain` says what it does."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

import headcount as hc
from headcount.cli import Json, Model, argument, loaded, output, print_json
from headcount.errors import UsageError
from headcount.models import LoadOptions
from headcount.records import option, parse_head


@dataclass(frozen=True)
class ShowArguments:
    """The second text, the layer, and how much is shown."""

    target: str | None = option(
        None, "TEXT", "The translation, for dec and cross heads; the second text for an encoder."
    )
    layer: str | None = option(None, "LAYER", "All heads of a layer: enc.5, or its number from 0.")
    top: int = option(3, "N", "", least=1, instead="hc.show(..., top=N) in Python")


def show_command(
    model: Model,
    sentence: Annotated[str, typer.Argument(metavar="SENTENCE", help="The sentence.")],
    asked: ShowArguments,
    load: LoadOptions,
    head: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The head: stack.layer.head, from 0, e.g. enc.0.2."),
    ] = None,
    chat: Annotated[
        bool,
        typer.Option("--chat", help="Put each text into the model's chat template, as a user's."),
    ] = False,
    json: Json = False,
) -> None:
    """Draw where a head, or a layer, looks on one sentence.

    [dim]headcount show minilm "The cat sat on the mat." --head enc.0.2[/dim]
    [dim]headcount show minilm "The cat sat on the mat." --layer enc.5[/dim]
    """
    if (head is None) == (asked.layer is None):
        raise UsageError("Name one head or one layer: --head enc.5.3 or --layer enc.5.")
    wanted = None if head is None else parse_head(head)
    how = {"target": asked.target, "chat": chat, "top": asked.top}
    view = hc.show(loaded(model, load), sentence, wanted, layer=asked.layer, **how)
    if json:
        print_json(view.to_dict())
    else:
        output().print(view)


def explain_command(
    head: Annotated[str, typer.Argument(metavar="HEAD", help="stack.layer.head, e.g. enc.5.3.")],
    run: Annotated[str, argument("RUN", "The run directory; `headcount report` writes run/.")] = (
        "run"
    ),
    json: Json = False,
) -> None:
    """Say what a head does, what it costs, whether it can be pruned.

    [dim]headcount explain enc.5.3[/dim]
    [dim]headcount explain enc.5.3 run/ --json[/dim]
    """
    if run.count(".") == 2 and head.count(".") != 2:  # the run first, as in Python
        head, run = run, head
    wanted, place = parse_head(head), Path(run)
    if not place.exists():
        write = f"headcount report MODEL --run {place}"
        raise UsageError(f"There is no run {place}/; measure one with {write}, then name it here.")
    found = hc.explain(run, wanted)
    if json:
        print_json(found.to_dict())
    else:
        output().print(repr(found), markup=False, highlight=False, soft_wrap=True)
