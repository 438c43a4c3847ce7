"""Options that several verbs share, each written once."""

from __future__ import annotations

from typing import Annotated

import typer

__all__ = [
    "AllowBin",
    "BatchSize",
    "Convention",
    "Device",
    "Dtype",
    "Json",
    "Limit",
    "Model",
    "RemoteCode",
    "Revision",
    "Seed",
]

_LOADING = "Loading the model"
_RUNNING = "Running"

Model = Annotated[
    str,
    typer.Argument(
        help="A folder, a .gguf file, a hub id, an installed model package, or a short name "
        "(`headcount ls` lists them).",
        show_default=False,
    ),
]
Device = Annotated[
    str,
    typer.Option(help="auto, cpu, cuda, cuda:1, mps ...", rich_help_panel=_LOADING),
]
Dtype = Annotated[
    str,
    typer.Option(help="auto, float32, bfloat16 or float16.", rich_help_panel=_LOADING),
]
AllowBin = Annotated[
    bool,
    typer.Option("--allow-bin", help="Also load pickled .bin weights.", rich_help_panel=_LOADING),
]
RemoteCode = Annotated[
    bool,
    typer.Option(
        "--trust-remote-code",
        help="Run code that comes with the model.",
        rich_help_panel=_LOADING,
    ),
]
Revision = Annotated[
    str | None,
    typer.Option(help="Branch, tag or commit on the hub.", rich_help_panel=_LOADING),
]
BatchSize = Annotated[
    int,
    typer.Option(help="Sentences a forward; never changes the numbers.", rich_help_panel=_RUNNING),
]
Limit = Annotated[
    int | None,
    typer.Option(
        help="Use so many sentences: the first, or with --seed a random sample.",
        rich_help_panel=_RUNNING,
    ),
]
Seed = Annotated[
    int | None,
    typer.Option(help="Seed of everything drawn at random.", rich_help_panel=_RUNNING),
]
Convention = Annotated[
    str,
    typer.Option(help="headcount, paper or code: whose definitions.", rich_help_panel=_RUNNING),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for machines.")]
