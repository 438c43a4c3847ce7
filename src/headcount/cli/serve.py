"""`headcount serve`: a local page to type a sentence, watch heads and switch them off."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from headcount.cli import options
from headcount.cli.options import loaded
from headcount.errors import UsageError


def serve_command(
    model: Annotated[
        str,
        typer.Argument(metavar="MODEL", help="As in other verbs; by default the translator."),
    ] = "translator",
    run: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="A run of this model: its roles and figures are shown beside the sentence.",
            show_default=False,
        ),
    ] = None,
    port: Annotated[
        int, typer.Option(metavar="N", help="Port on this machine; 0 takes a free one.")
    ] = 0,
    open_page: Annotated[
        bool, typer.Option("--open", help="Show the page in the browser.")
    ] = False,
    device: options.Device = "auto",
    dtype: options.Dtype = "auto",
    revision: options.Revision = None,
    allow_bin: options.AllowBin = False,
    trust_remote_code: options.RemoteCode = False,
    tokenizer: options.Tokenizer = None,
) -> None:
    """Type a sentence, watch every head on it, switch heads off and see what the model then says.

    The page is for this machine alone (127.0.0.1), behind a random word in its address.

    [dim]headcount serve[/dim]
    [dim]headcount serve smollm2 --port 8000 --open[/dim]
    """
    _check_installed()
    from headcount.report import address, taken_socket
    from headcount.report import run_server as answer

    taken = taken_socket(port)
    subject = loaded(
        model,
        device=device,
        dtype=dtype,
        revision=revision,
        allow_bin=allow_bin,
        trust_remote_code=trust_remote_code,
        tokenizer=tokenizer,
    )
    from headcount.report import app_of, inspector_of, new_token

    token = new_token()
    app = app_of(inspector_of(subject, run), token)
    place = address(taken, token)
    typer.echo(f"{subject!r}", err=True)
    typer.echo(f"Open {place} in a browser; Ctrl-C ends it.")
    if open_page:
        import webbrowser

        webbrowser.open(place)
    try:
        answer(app, taken)
    except KeyboardInterrupt:
        typer.echo("Ended.", err=True)


def _check_installed() -> None:
    from importlib.util import find_spec

    lacking = [name for name in ("starlette", "uvicorn") if find_spec(name) is None]
    if lacking:
        raise UsageError(
            f"headcount serve needs {' and '.join(lacking)}, which is not installed; "
            "pip install 'headcount[serve]'."
        )
