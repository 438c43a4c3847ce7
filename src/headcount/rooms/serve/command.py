"""`headcount serve`: a local page to type a sentence, watch heads and switch them off."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

import headcount as hc
from headcount.cli import echo, loaded, say
from headcount.errors import UsageError, install_hint
from headcount.models import LoadOptions
from headcount.records import option


@dataclass(frozen=True)
class ServeArguments:
    """What is shown, and where."""

    run: Path | None = option(
        None, "DIR", "A run of this model: its roles and figures are shown with the sentence."
    )
    port: int = option(0, "N", "Port on this machine; 0 takes a free one.")
    open_page: bool = option(False, None, "Show the page in the browser.", "--open")


def serve_command(
    asked: ServeArguments,
    load: LoadOptions,
    model: Annotated[
        str,
        typer.Argument(metavar="MODEL", help="As in other verbs; by default the translator."),
    ] = "translator",
) -> None:
    """Open a live page: type a sentence, switch heads off.

    The page is for this machine alone (127.0.0.1), behind a random word in its address.

    [dim]headcount serve[/dim]
    [dim]headcount serve smollm2 --port 8000 --open[/dim]
    """
    from importlib.util import find_spec

    lacking = [name for name in ("starlette", "uvicorn") if find_spec(name) is None]
    if lacking:
        raise UsageError(
            f"headcount serve needs {' and '.join(lacking)}, which is not installed; "
            f"{install_hint('serve')}."
        )
    if asked.run is not None:
        hc.Run.open(
            asked.run, create=False
        )  # a folder that is no run shows before the model is loaded
    from headcount.rooms.serve.inspector import inspector_of
    from headcount.rooms.serve.server import address, app_of, new_token, run_server, taken_socket

    taken = taken_socket(asked.port)
    subject = loaded(model, load)
    import torch

    if sum(weight.numel() for weight in subject.model.parameters()) < _SMALL:
        torch.set_num_threads(1)
    token = new_token()
    app = app_of(inspector_of(subject, asked.run), token)
    place = address(taken, token)
    say(f"{subject!r}")
    echo(f"Open {place} in a browser; Ctrl-C ends it.")
    if asked.open_page:
        import webbrowser

        webbrowser.open(place)
    try:
        run_server(app, taken)
    except KeyboardInterrupt:
        say("Ended.")


#: Weights of a model that one thread answers for sooner than two, a sentence at a time.
_SMALL = 50_000_000
