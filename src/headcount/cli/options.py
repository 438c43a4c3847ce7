"""Options that several verbs share, each written once."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from headcount.cli.output import announced
from headcount.errors import UsageError

if TYPE_CHECKING:
    from headcount.models import Subject


# --- Options that several verbs share, each written once ----------------------------------------

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


# --- Load the model that a command names, and say so while it takes its time --------------------


def loaded(
    model: str,
    *,
    device: str = "auto",
    dtype: str = "auto",
    revision: str | None = None,
    allow_bin: bool = False,
    trust_remote_code: bool = False,
    tokenizer: str | None = None,
) -> Subject:
    """The model; what there is to note about it stands in its `notes` instead of a warning."""
    with announced(f"Loading {model}"), warnings.catch_warnings(action="ignore"):
        from headcount.models import load

        return load(
            model,
            device=device,
            dtype=dtype,
            revision=revision,
            allow_bin=allow_bin,
            trust_remote_code=trust_remote_code,
            tokenizer=tokenizer,
        )


# --- Options of the roles -----------------------------------------------------------------------

_PANEL = "What heads do (roles)"

Treebank = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="Sentences with trees, .conllu or .conll: which heads follow which relation. Serves "
        "as the text where no other is given; `sample` for the bundled one.",
        rich_help_panel=_PANEL,
        show_default=False,
    ),
]
Coref = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="Coreference: .jsonl with sents and clusters, .conllu with Entity=, or GAP's .tsv; "
        "`sample` for the bundled one.",
        rich_help_panel=_PANEL,
        show_default=False,
    ),
]
Arguments = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="Predicates and their arguments: .jsonl with tokens and preds.",
        rich_help_panel=_PANEL,
        show_default=False,
    ),
]
Parser = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Make a treebank of the text: a .udpipe file, or an installed spaCy pipeline.",
        rich_help_panel=_PANEL,
        show_default=False,
    ),
]
Roles = Annotated[
    bool,
    typer.Option(
        "--roles",
        help="Judge heads also without any of the files above.",
        rich_help_panel=_PANEL,
    ),
]
Control = Annotated[
    str | None,
    typer.Option(
        metavar="KIND",
        callback=one_of("random-init", "random-but-embeddings"),
        help="Do the same with a twin of random weights, and put it beside every role: "
        "random-init, or random-but-embeddings.",
        rich_help_panel=_PANEL,
        show_default=False,
    ),
]
Twins = Annotated[
    int,
    typer.Option(
        "--twins",
        metavar="N",
        callback=positive,
        help="How many twins --control takes the mean of.",
        rich_help_panel=_PANEL,
    ),
]
WordRows = Annotated[
    str | None,
    typer.Option(
        metavar="HOW",
        callback=one_of("mean", "first", "max"),
        help="How the rows of a word's pieces become one: mean, first or max; by default what "
        "--convention says.",
        rich_help_panel=_PANEL,
        show_default=False,
    ),
]
Relations = Annotated[
    str | None,
    typer.Option(
        metavar="NAMES",
        help="Relations to test, separated by commas; by default all that occur.",
        rich_help_panel=_PANEL,
        show_default=False,
    ),
]
Frequencies = Annotated[
    str | None,
    typer.Option(
        "--word-frequencies",
        metavar="WHOSE",
        help="How rare a token is: those of the corpus (by default), wordfreq or wordfreq:de, or a "
        "file with a word, a tab and its count on each line.",
        rich_help_panel=_PANEL,
        show_default=False,
    ),
]
