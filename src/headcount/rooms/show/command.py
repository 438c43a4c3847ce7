"""`headcount show`: draw one head's attention on one sentence in the terminal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

import headcount as hc
from headcount.cli import Chat, Json, Model, loaded, output, print_json
from headcount.models import LoadOptions
from headcount.records import option, parse_head


@dataclass(frozen=True)
class ShowArguments:
    """What goes with the sentence, and how much is shown."""

    target: str | None = option(
        None, "TEXT", "The translation, for dec and cross heads; the second text for an encoder."
    )
    top: int = option(3, "N", "", least=1, instead="hc.show(..., top=N) in Python")


def show_command(
    model: Model,
    sentence: Annotated[str, typer.Argument(metavar="SENTENCE", help="The sentence.")],
    head: Annotated[
        str, typer.Option(metavar="NAME", help="The head: stack.layer.head, from 0, e.g. enc.0.2.")
    ],
    asked: ShowArguments,
    load: LoadOptions,
    chat: Chat = False,
    json: Json = False,
) -> None:
    """Draw where one head of MODEL looks on one sentence.

    [dim]headcount show minilm "The cat sat on the mat." --head enc.0.2[/dim]
    """
    wanted = parse_head(head)
    subject = loaded(model, load)
    view = hc.show(subject, sentence, wanted, target=asked.target, chat=chat, top=asked.top)
    if json:
        print_json(view.to_dict())
    else:
        output().print(view)
