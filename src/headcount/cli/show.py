"""`headcount show`: draw one head's attention on one sentence in the terminal."""

from __future__ import annotations

from typing import Annotated

import typer

from headcount.cli import options
from headcount.cli.options import loaded
from headcount.cli.output import output, print_json
from headcount.records import parse_head


def show_command(
    model: options.Model,
    sentence: Annotated[
        str, typer.Argument(metavar="SENTENCE", help="The sentence.", show_default=False)
    ],
    head: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="The head: stack.layer.head, from 0, e.g. enc.0.2.",
            show_default=False,
        ),
    ],
    target: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT",
            help="The translation, for dec and cross heads; the second text for an encoder.",
        ),
    ] = None,
    top: Annotated[
        int, typer.Option(metavar="N", callback=options.positive, help="Keys to name.")
    ] = 3,
    chat: options.Chat = False,
    device: options.Device = "auto",
    dtype: options.Dtype = "auto",
    revision: options.Revision = None,
    allow_bin: options.AllowBin = False,
    trust_remote_code: options.RemoteCode = False,
    tokenizer: options.Tokenizer = None,
    json: options.Json = False,
) -> None:
    """Draw where one head of MODEL looks on one sentence.

    [dim]headcount show minilm "The cat sat on the mat." --head enc.0.2[/dim]
    """
    wanted = parse_head(head)
    subject = loaded(
        model,
        device=device,
        dtype=dtype,
        revision=revision,
        allow_bin=allow_bin,
        trust_remote_code=trust_remote_code,
        tokenizer=tokenizer,
    )
    from headcount.report import show as look

    view = look(subject, sentence, wanted, target=target, chat=chat, top=top)
    if json:
        print_json(view.to_dict())
    else:
        output().print(view)
