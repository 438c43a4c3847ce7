"""`headcount show`: draw one head's attention on one sentence in the terminal."""

from __future__ import annotations

from typing import Annotated

import typer

from headcount.cli import options

__all__ = ["show"]


def show(
    model: options.Model,
    sentence: Annotated[str, typer.Argument(help="The sentence.", show_default=False)],
    head: Annotated[
        str, typer.Option(help="The head: stack.layer.head, from 0.", show_default=False)
    ],
    target: Annotated[
        str | None,
        typer.Option(
            help="The translation, for dec and cross heads; the second text for an encoder."
        ),
    ] = None,
    top: Annotated[int, typer.Option(help="Keys to name for each query.")] = 3,
    chat: Annotated[
        bool, typer.Option("--chat", help="Put the sentence into the model's chat template.")
    ] = False,
    device: options.Device = "auto",
    dtype: options.Dtype = "auto",
    revision: options.Revision = None,
    allow_bin: options.AllowBin = False,
    trust_remote_code: options.RemoteCode = False,
    json: options.Json = False,
) -> None:
    """Draw where one head of MODEL looks on one sentence.

    [dim]headcount show minilm "The cat sat on the mat." --head enc.0.2[/dim]
    """
    from headcount.heads import parse_head

    wanted = parse_head(head)

    from headcount.cli.progress import out_console, told
    from headcount.models.load import load
    from headcount.show import show as look

    with told(f"Loading {model}"):
        subject = load(
            model,
            device=device,
            dtype=dtype,
            revision=revision,
            allow_bin=allow_bin,
            trust_remote_code=trust_remote_code,
        )
    view = look(subject, sentence, wanted, target=target, chat=chat, top=top)
    if json:
        from headcount.exact_json import encode

        typer.echo(encode(view.to_dict()))
    else:
        out_console().print(view)
