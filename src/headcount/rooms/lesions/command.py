"""`headcount lesions`: how much less likely each output word becomes without each head."""

from __future__ import annotations

from typing import Annotated

import typer

import headcount as hc
from headcount.cli import Json, Model, loaded, output, print_json
from headcount.models import LoadOptions


def lesions_command(
    model: Model,
    sentence: Annotated[str, typer.Argument(metavar="SENTENCE", help="The sentence.")],
    load: LoadOptions,
    target: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="The translation; the model's own by default."),
    ] = None,
    json: Json = False,
) -> None:
    """Switch each head off in turn: which output words need it?

    [dim]headcount lesions translator "The cat sat on the mat."[/dim]
    """
    found = hc.lesions(loaded(model, load), sentence, target)
    if json:
        print_json(found.to_dict())
    else:
        output().print(found)
