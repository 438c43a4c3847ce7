"""Options of the verbs: fields of small dataclasses, each written once, that become flags.

A verb takes bundles of options, `load: LoadOptions`, and `with_options` shows typer a flag for each
of their fields: the name, the type and the default are the field's, the help is given with it.
What the library takes as well (`LoadOptions`, `WorkOptions`) is defined there.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from dataclasses import Field, dataclass, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import typer

import headcount as hc
from headcount.cli.printing import status
from headcount.errors import UsageError
from headcount.models import LoadOptions
from headcount.records import EngineOptions, WorkOptions, option

# --- Bundles of options become flags ------------------------------------------------------------

_PANELS: dict[Any, str] = {
    LoadOptions: "Loading the model",
    WorkOptions: "Running",
    EngineOptions: "Where it runs",
}


def without(*names: str) -> frozenset[str]:
    """Fields that a verb does not offer: ``load: Annotated[LoadOptions, without("dtype")]``."""
    return frozenset(names)


def with_options(verb: Callable[..., None]) -> Callable[..., None]:
    """The verb as typer reads it: a parameter for each field of the bundles that it takes."""
    parameters: list[inspect.Parameter] = []
    bundles: dict[str, tuple[Any, list[str]]] = {}
    hints = get_type_hints(verb, include_extras=True)
    for name, parameter in inspect.signature(verb).parameters.items():
        annotated = get_origin(hints[name]) is Annotated
        kind, *more = get_args(hints[name]) if annotated else (hints[name],)
        if not is_dataclass(kind):
            parameters.append(_parameter(name, parameter.default, hints[name]))
            continue
        left_out = more[0] if more else ()
        types = get_type_hints(kind)
        shown = [one for one in fields(kind) if one.metadata and one.name not in left_out]
        for one in shown:
            flag = _flag(one, types[one.name], _PANELS.get(kind))
            parameters.append(_parameter(one.name, one.default, flag))
        bundles[name] = kind, [one.name for one in shown]

    def run(**given: Any) -> None:
        for name, (kind, inside) in bundles.items():
            given[name] = kind(**{one: given.pop(one) for one in inside})
        verb(**given)

    run.__doc__, run.__annotations__ = verb.__doc__, {p.name: p.annotation for p in parameters}
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return run


def _parameter(name: str, default: Any, annotation: Any) -> inspect.Parameter:
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, default=default, annotation=annotation)


def _flag(one: Field[Any], kind: Any, panel: str | None) -> Any:
    """A field as typer's option; a switch has no --no-..., unless its flags say so."""
    about = one.metadata
    switch = (f"--{one.name.replace('_', '-')}",) if isinstance(one.default, bool) else ()
    flag = typer.Option(
        *(about["flags"] or switch),
        metavar=about["metavar"],
        help=about["help"],
        callback=_check(about["choices"], about["least"]),
        rich_help_panel=about["panel"] or panel,
    )
    return Annotated[kind, flag]


def _check(choices: tuple[str, ...], least: int | None) -> Callable[..., Any]:
    def check(param: typer.CallbackParam, value: Any) -> Any:
        if value is not None and choices and value not in choices:
            allowed = f"{', '.join(choices[:-1])} or {choices[-1]}"
            raise UsageError(f"{param.opts[0]} is '{value}'; choose {allowed}.")
        if value is not None and least is not None and value < least:
            raise UsageError(f"{param.opts[0]} is {value}; it must be {least} or more.")
        return value

    return check


# --- What several verbs take --------------------------------------------------------------------


def argument(metavar: str, about: str) -> typer.models.ArgumentInfo:
    """What a verb takes without a flag; its default is said in `about`."""
    found: typer.models.ArgumentInfo = typer.Argument(
        metavar=metavar, help=about, show_default=False
    )
    return found


Model = Annotated[
    str,
    argument(
        "MODEL",
        "A folder, a .gguf file, a hub id, an installed model package, or a short name "
        "(`headcount ls` lists them).",
    ),
]
Chat = Annotated[
    bool, typer.Option("--chat", help="Put each text into the model's chat template, as a user's.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for machines.")]


@dataclass(frozen=True)
class RunArguments:
    """The run directory that a verb writes."""

    out: Path | None = option(
        None,
        "DIR",
        "Run directory to write; made where there is none, joined where there is one.",
        "--out",
        "-o",
    )
    replace: bool = option(False, None, "Start the run directory's table anew.")


def names(given: str | None) -> list[str] | None:
    """Names separated by commas; None where nothing was given.

    >>> names("self, next,"), names(None)
    (['self', 'next'], None)
    """
    return None if given is None else [name.strip() for name in given.split(",") if name.strip()]


def loaded(model: str, load: LoadOptions) -> hc.Subject:
    """The model, with a word on the terminal meanwhile; warnings are in its `notes`."""
    with status(f"Loading {model}"), warnings.catch_warnings(action="ignore"):
        return hc.load(model, **vars(load))


def check_same_model(run: hc.Run, subject: hc.Subject) -> None:
    """Refuse a run directory of another model before the work."""
    about = {"weights": subject.weights_hash}
    run.check_subject(hc.HeadTable.of(subject.heads, {}, provenance=about))
