"""Options of the verbs: fields of small dataclasses, each written once, that become flags.

A verb takes bundles of options, `load: LoadOptions`, and `with_options` shows typer a flag for each
of their fields: the name, the type and the default are the field's, the help is given with it.
Fields of a family share one flag: ``--load revision=main,allow-bin``. What the library takes as
well (`LoadOptions`, `ReadingOptions`) is defined there.
"""

from __future__ import annotations

import difflib
import inspect
import shlex
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import Field, dataclass, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import typer
from typer.core import TyperCommand

import headcount as hc
from headcount.cli.printing import TerminalProgress, say, status
from headcount.errors import UsageError
from headcount.models import LoadOptions
from headcount.records import option, progress

# --- Bundles of options become flags ------------------------------------------------------------


def without(*names: str) -> frozenset[str]:
    """Fields that a verb does not offer: ``load: Annotated[LoadOptions, without("dtype")]``."""
    return frozenset(names)


def with_options(verb: Callable[..., None]) -> Callable[..., None]:
    """The verb as typer reads it: a parameter for each field of the bundles that it takes."""
    parameters: list[inspect.Parameter] = []
    bundles: dict[str, _Bundle] = {}
    hints = get_type_hints(verb, include_extras=True)
    for name, parameter in inspect.signature(verb).parameters.items():
        annotated = get_origin(hints[name]) is Annotated
        kind, *more = get_args(hints[name]) if annotated else (hints[name],)
        if is_dataclass(kind):
            bundles[name] = _Bundle(kind, frozenset(more[0] if more else ()))
            parameters += bundles[name].parameters()
        else:
            parameters.append(_parameter(name, parameter.default, hints[name]))

    def run(**given: Any) -> None:
        for name, bundle in bundles.items():
            given[name] = bundle.made(given)
        with progress(TerminalProgress()):
            verb(**given)

    run.__doc__, run.__annotations__ = verb.__doc__, {p.name: p.annotation for p in parameters}
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return run


class _Bundle:
    """A dataclass whose fields are options: flags of their own, or keys of a family's flag."""

    def __init__(self, kind: Any, left_out: frozenset[str]) -> None:
        self.kind, types = kind, get_type_hints(kind)
        shown = [one for one in fields(kind) if one.metadata and one.name not in left_out]
        self.own = [one for one in shown if not one.metadata["key_of"]]
        self.families: dict[str, list[Field[Any]]] = {}
        for one in shown:
            if family := one.metadata["key_of"]:
                self.families.setdefault(family, []).append(one)
        self.types = {one.name: _read_as(one, types[one.name]) for one in shown}

    def parameters(self) -> Iterator[inspect.Parameter]:
        """Flags of fields, then of families; the keys of a family were flags in earlier releases.

        A field that is called as its family shares its flag: ``--engine ray,workers=4``.
        """
        for one in self.own:
            keys = self.families.get(one.name, [])
            help = _family_help(one.metadata["help"], keys) if keys else one.metadata["help"]
            hidden = one.metadata["instead"] is not None
            flag = self._flag(one, help, hidden=hidden, check=not keys)
            yield _parameter(one.name, one.default, flag)
        for family, keys in self.families.items():
            if family not in {one.name for one in self.own}:
                flag = typer.Option(
                    f"--{family}",
                    metavar="KEY=VALUE",
                    help=_family_help("", keys),
                    rich_help_panel=keys[0].metadata["panel"],
                )
                yield _parameter(f"{family}_keys", None, Annotated[list[str] | None, flag])
            for one in keys:
                yield _parameter(one.name, one.default, self._flag(one, "", hidden=True))

    def _flag(self, one: Field[Any], help: str, *, hidden: bool = False, check: bool = True) -> Any:
        """A field as typer's option; a switch has no --no-..., unless its flags say so."""
        about = one.metadata
        switch = (_flag_of(one.name),) if _is_switch(one) else ()
        flag = typer.Option(
            *(about["flags"] or switch),
            metavar=about["metavar"],
            help=help,
            callback=_check(about) if check else None,
            parser=_number_of(one) if float in get_args(self.types[one.name][0]) else None,
            rich_help_panel=about["panel"],
            hidden=hidden,
        )
        return Annotated[self.types[one.name][0], flag]

    def made(self, given: dict[str, Any]) -> Any:
        """The value, made of what was given; its options are taken out."""
        for one in self.own:
            if one.metadata["instead"] and given[one.name] != one.default:
                flag = next(iter(one.metadata["flags"]), _flag_of(one.name))
                new = one.metadata["instead"]
                say(f"Warning: {flag} will be removed in the next release; use {new}.")
        found = {one.name: self._read(one, given.pop(one.name)) for one in self.own}
        for family, keys in self.families.items():
            named: dict[str, Any] = {}
            words = given.pop(f"{family}_keys", None) or []
            if family in found:
                first, _, rest = str(found[family] or "").partition(",")
                words = [*([rest] if rest else []), *words]
                if "=" in first:
                    words, first = [first, *words], ""
                (main,) = (one for one in self.own if one.name == family)
                found[family] = first or getattr(self.kind, family)
                _checked(main.metadata, _flag_of(family), found[family])
            for one in keys:  # the flags of an earlier release
                old = given.pop(one.name)
                if old != one.default:
                    named[one.name] = self._read(one, old)
                    flag = next(iter(one.metadata["flags"]), _flag_of(one.name))
                    word = f'"{old}"' if "," in str(old) else old
                    new = f"--{family} {_key(one)}" + ("" if old is True else f"={word}")
                    until = "the old flag will be removed in the next release"
                    say(f"Warning: {flag} is {new} now; {until}.")
            found |= {**named, **self._keys(family, keys, ",".join(words))}
        return self.kind(**found)

    def _read(self, one: Field[Any], value: Any) -> Any:
        read = self.types[one.name][1]
        return read(value) if value is not None and read is not None else value

    def _keys(self, family: str, keys: list[Field[Any]], text: str) -> dict[str, Any]:
        """What ``key=value,key`` gives to the fields of a family."""
        known = {_key(one): one for one in keys}
        found: dict[str, Any] = {}
        for part in filter(None, map(str.strip, cut(text, f"--{family}"))):
            key, equals, word = part.partition("=")
            one = known.get(key.replace("_", "-"))
            if one is None:
                near = difflib.get_close_matches(key, known, n=1)
                hint = f"did you mean {near[0]}?" if near else f"it has {', '.join(known)}."
                raise UsageError(f"--{family} has no key '{key}'; {hint}")
            flag = f"--{family} {_key(one)}"
            if not equals and not _is_switch(one):
                raise UsageError(f"{flag} has no value; write {_key(one)}=VALUE.")
            kind, read = self.types[one.name]
            value = _converted(kind, word if equals else "yes", flag)
            _checked(one.metadata, flag, value)
            found[one.name] = value if read is None else read(value)
        return found


def _number_of(one: Field[Any]) -> Callable[[str], float]:
    """Reads a number; 50% is a share of 0.5, and nothing else has a percent sign."""

    def number(word: str | float) -> float:
        text, sign, rest = str(word).partition("%")
        if not sign or (rest == "" and one.metadata["metavar"] == "SHARE"):
            return float(_converted(float, text, _flag_of(one.name))) / (100 if sign else 1)
        raise UsageError(
            f"{_flag_of(one.name)} is '{word}'; it is in {one.metadata['metavar'].lower()}: leave "
            "out the percent sign: 0.5 is half a point of BLEU, or 0.005 of accuracy."
        )

    return number


def _flag_of(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def cut(text: str, what: str) -> list[str]:
    """The parts between commas; what stands in quotes is not cut."""
    lexer = shlex.shlex(text, posix=True)
    lexer.whitespace, lexer.whitespace_split = ",", True
    lexer.escape = lexer.commenters = ""  # backslashes and # belong to paths
    try:
        return list(lexer)
    except ValueError:
        raise UsageError(f"{what} has a quote that is not closed; close it.") from None


def _is_switch(one: Field[Any]) -> bool:
    return isinstance(one.default, bool) or (one.default is None and not one.metadata["metavar"])


def _key(one: Field[Any]) -> str:
    return one.name.replace("_", "-")


def _family_help(about: str, keys: list[Field[Any]]) -> str:
    """What the flag of a family takes, a key a sentence."""
    parts = [f"{_key(one)}{'=' * bool(m)}{m or ''}: {one.metadata['help']}"
             for one in keys for m in [one.metadata["metavar"]]]  # fmt: skip
    return "\n\n".join([*filter(None, [about]), "Keys, with commas between. " * (not about)
                        + parts[0], *parts[1:]])  # fmt: skip


def _read_as(one: Field[Any], hint: Any) -> tuple[Any, Callable[[Any], Any] | None]:
    """The type that typer reads a field as, and what makes the field's value of it."""
    reads = one.metadata["reads"]
    if reads is None:
        return hint, None
    kind = reads if isinstance(reads, type) else str
    made = None if isinstance(reads, type) else reads
    return (kind | None if one.default is None else kind), made


def _converted(hint: Any, word: str, flag: str) -> Any:
    """A word on the command line as a value of a type."""
    kinds = [kind for kind in get_args(hint) or (hint,) if kind is not type(None)]
    if bool in kinds:
        known = {"yes": True, "true": True, "no": False, "false": False}
        if word.lower() not in known:
            raise UsageError(f"{flag} is '{word}'; it must be yes or no.")
        return known[word.lower()]
    for kind, called in ((int, "a whole number"), (float, "a number")):
        if kind in kinds:
            try:
                return kind(word)
            except ValueError:
                raise UsageError(f"{flag} is '{word}'; it must be {called}.") from None
    return Path(word) if Path in kinds else word


def _parameter(name: str, default: Any, annotation: Any) -> inspect.Parameter:
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, default=default, annotation=annotation)


def _check(about: Mapping[str, Any]) -> Callable[..., Any]:
    def check(param: typer.CallbackParam, value: Any) -> Any:
        _checked(about, param.opts[0], value)
        return value

    return check


def _checked(about: Mapping[str, Any], flag: str, value: Any) -> None:
    choices, least = about["choices"], about["least"]
    if value is not None and choices and value not in choices:
        allowed = f"{', '.join(choices[:-1])} or {choices[-1]}"
        raise UsageError(f"{flag} is '{value}'; choose {allowed}.")
    if value is not None and least is not None and value < least:
        raise UsageError(f"{flag} is {value}; it must be {least} or more.")


# --- Help: the common options, and with --help-all the others -----------------------------------


class Verb(TyperCommand):
    """A verb whose `--help` shows the options in `COMMON`, and `--help-all` all of them."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Show all options with --help-all, or if a verb has few."""
        every = "--help-all" in args
        shown = [one for one in self.params if not getattr(one, "hidden", False)]
        if not every and len(shown) > _FEW:
            for one in shown:
                if isinstance(one, typer.core.TyperOption) and not COMMON.intersection(one.opts):
                    one.hidden = True
            self.epilog = f"More options: {ctx.command_path} --help-all"
        return super().parse_args(ctx, ["--help"] if every else args)


#: A verb with so many parameters shows all of them.
_FEW = 12
#: The common options.
COMMON = {
    *("--text", "--pairs", "--treebank", "--coref", "--task", "--out", "--run", "--json"),
    *("--limit", "--device", "--columns", "--best-heads", "--control", "--by", "--shut"),
    *("--max-loss", "--keep", "--drop-share", "--heads", "--even", "--heal", "--dry-run"),
    *("--tolerance", "--thorough", "--gates", "--compare", "--open", "--head", "--target"),
    *("--words", "--kind", "--test", "--parse", "--explain", "--match"),
}


# --- What several verbs take --------------------------------------------------------------------


def argument(metavar: str, about: str) -> typer.models.ArgumentInfo:
    """What a verb takes without a flag; `about` names its default."""
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
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for machines.")]


@dataclass(frozen=True)
class RunArguments:
    """The run directory that a verb writes."""

    out: Path | None = option(
        None,
        "DIR",
        "Run directory to write: made if there is none, extended if there is one.",
        "--out",
        "-o",
    )
    replace: bool = option(False, None, "Start the run directory's table anew.")


def loaded(model: str, load: LoadOptions) -> hc.Subject:
    """The model, with a word on the terminal meanwhile; warnings are in its `notes`."""
    with status(f"Loading {model}"), warnings.catch_warnings(action="ignore"):
        return hc.load(model, **vars(load))
