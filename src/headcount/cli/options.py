"""Options that several verbs share, each written once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from headcount.errors import UsageError

__all__ = [
    "AllowBin",
    "BatchSize",
    "Chat",
    "Convention",
    "Device",
    "Dtype",
    "Json",
    "Limit",
    "Model",
    "RemoteCode",
    "Revision",
    "Seed",
    "Tokenizer",
    "names",
    "one_of",
    "positive",
]

_LOADING = "Loading the model"
_RUNNING = "Running"


def positive(param: typer.CallbackParam, value: int | None) -> int | None:
    """Refuse a number below 1."""
    if value is not None and value < 1:
        raise UsageError(f"{param.opts[0]} is {value}; it must be 1 or more.")
    return value


def one_of(*words: str) -> Callable[[typer.CallbackParam, str | None], str | None]:
    """Refuse every word but these."""

    def check(param: typer.CallbackParam, value: str | None) -> str | None:
        if value is not None and value not in words:
            allowed = f"{', '.join(words[:-1])} or {words[-1]}"
            raise UsageError(f"{param.opts[0]} is '{value}'; choose {allowed}.")
        return value

    return check


Model = Annotated[
    str,
    typer.Argument(
        metavar="MODEL",
        help="A folder, a .gguf file, a hub id, an installed model package, or a short name "
        "(`headcount ls` lists them).",
        show_default=False,
    ),
]
Chat = Annotated[
    bool, typer.Option("--chat", help="Put each text into the model's chat template, as a user's.")
]
Device = Annotated[
    str,
    typer.Option(metavar="NAME", help="auto, cpu, cuda, cuda:1, mps ...", rich_help_panel=_LOADING),
]
Dtype = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="auto (float32 on a CPU), float32, bfloat16, float16.",
        rich_help_panel=_LOADING,
    ),
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
    typer.Option(
        metavar="NAME", help="Branch, tag or commit on the hub.", rich_help_panel=_LOADING
    ),
]
Tokenizer = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Folder or hub id of the tokenizer, where the model has none.",
        rich_help_panel=_LOADING,
    ),
]
BatchSize = Annotated[
    int,
    typer.Option(
        metavar="N",
        callback=positive,
        help="Sentences a forward; never changes the numbers.",
        rich_help_panel=_RUNNING,
    ),
]
Limit = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        callback=positive,
        help="Use so many sentences: the first, or with --seed a random sample.",
        rich_help_panel=_RUNNING,
    ),
]
Seed = Annotated[
    int | None,
    typer.Option(metavar="N", help="Seed of everything drawn at random.", rich_help_panel=_RUNNING),
]
Convention = Annotated[
    str,
    typer.Option(
        callback=one_of("headcount", "paper", "code"),
        metavar="WHOSE",
        help="Whose definitions: headcount's, those of the papers' text (paper), or those of the "
        "authors' programs (code).",
        rich_help_panel=_RUNNING,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for machines.")]


def names(given: str | None) -> list[str] | None:
    """Names separated by commas; None where nothing was given.

    >>> names("self, next,"), names(None)
    (['self', 'next'], None)
    """
    return None if given is None else [name.strip() for name in given.split(",") if name.strip()]
