"""Options as values: fields of a small frozen dataclass, each with its default and its meaning.

A function of the library takes such a value in place of a list of parameters, and the command
line makes its options of the same fields (`headcount.cli.options`).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, fields, replace
from functools import wraps
from inspect import signature
from typing import Any, NamedTuple, ParamSpec, Self, TypeVar

from headcount.errors import CONVENTIONS, UsageError
from headcount.records.watching import progress

# --- A field of a value -------------------------------------------------------------------------


def option(
    default: Any,
    metavar: str | None,
    help: str,
    *flags: str,
    choices: tuple[str, ...] = (),
    least: int | None = None,
    panel: str | None = None,
    key_of: str | None = None,
    instead: str | None = None,
    reads: type | Callable[[str], Any] | None = None,
) -> Any:
    """A field of a bundle of options: its default, the word for its value, and what it means.

    The flag is the field's name unless `flags` say otherwise; `choices` and `least` are checked
    by the command line before anything is loaded; `panel` is the heading in its help. With `key_of`
    it is a key of a flag that the fields of a family share: ``--load revision=main``. An option
    that goes with the next release says what is done `instead`. `reads` makes the value from the
    word on the command line, where the type of the field does not say how.
    """
    about: dict[str, Any] = {"metavar": metavar, "help": help, "flags": flags}
    about |= {"choices": choices, "least": least, "panel": panel}
    about |= {"key_of": key_of, "reads": reads, "instead": instead}
    return field(default=default, metadata=about)


def names(given: str | None) -> list[str] | None:
    """Names separated by commas, or as a value of a key by bars; None where nothing was given.

    >>> names("self, next,"), names("nsubj|obj"), names(None)
    (['self', 'next'], ['nsubj', 'obj'], None)
    """
    if given is None:
        return None
    return [name.strip() for name in given.replace("|", ",").split(",") if name.strip()]


@dataclass(frozen=True)
class WorkOptions:
    """How texts or examples are gone through; what the options of every verb begin with.

    >>> WorkOptions(limit=100)
    WorkOptions(convention='headcount', limit=100, seed=None, batch_size=None)
    """

    convention: str = option(
        "headcount",
        "WHOSE",
        "Whose definitions: headcount's, those of the papers' text (paper), or those of the "
        "authors' programs (code).",
        choices=CONVENTIONS,
        panel="Running",
    )
    limit: int | None = option(
        None,
        "N",
        "Use N sentences: the first, or with --seed a random sample.",
        least=1,
        panel="Running",
    )
    seed: int | None = option(None, "N", "Seed of everything drawn at random.", panel="Running")
    batch_size: int | None = option(
        None,
        "N",
        "Sentences per forward pass (default: by their tokens in a survey, else 16); never changes "
        "the numbers.",
        least=1,
        panel="Running",
    )

    @property
    def examples(self) -> int:
        """Examples per forward pass of what does not choose by their tokens."""
        return self.batch_size or 16

    def limited(self, limit: int | None) -> Self:
        """The same with a limit, where one is given beside it."""
        return self if limit is None else replace(self, limit=limit)


V = TypeVar("V")


def as_value(kind: type[V], given: Any, name: str) -> V:
    """An option value as it comes: made, left out, or what its field of the same name is.

    >>> as_value(WorkOptions, None, "work").examples
    16
    """
    if isinstance(given, kind):
        return given
    if given is None:
        return kind()
    if any(one.name == name for one in fields(kind)):  # type: ignore[arg-type]
        return kind(**{name: given})
    raise UsageError(
        f"{name} is {given!r}; give hc.{kind.__name__}(...), e.g. "
        f"{name}=hc.{kind.__name__}({fields(kind)[-1].name}=...)."  # type: ignore[arg-type]
    )


# --- Keywords of before, for one release ----------------------------------------------------------

P = ParamSpec("P")
R = TypeVar("R")


class Renamed(NamedTuple):
    """A keyword that is another one now."""

    default: Any
    #: Puts its value where it belongs among the keywords, and says how that is written.
    put: Callable[[dict[str, Any], Any], str]


def old_keywords(
    renamed: Mapping[str, Renamed] | None = None, **values: type
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Let a function take for one release the keywords that are fields of its values now.

    ``@old_keywords(reading=ReadingOptions)`` takes ``max_length=9`` as
    ``reading=ReadingOptions(max_length=9)``, with a warning that says so. What became something
    else than a field stands in `renamed`.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        needed = _needed(function)
        code = function.__code__
        taken = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        homes = {
            one.name: (name, kind)
            for name, kind in values.items()
            for one in fields(kind)
            if one.name not in taken
        }
        moved = {old: getattr(kind, old, None) for old, (_, kind) in homes.items()}
        moved |= {old: one.default for old, one in (renamed or {}).items()}
        moved |= dict.fromkeys(_SHOWN)

        @wraps(function)
        def call(*args: P.args, **given: P.kwargs) -> R:
            known: dict[str, Any] = dict(zip(taken, args, strict=False)) | given
            lacking = [name for name in needed if name not in known]
            if lacking and len(args) <= len(taken):
                raise UsageError(
                    f"{function.__name__} has no {lacking[0]}; write hc.{function.__name__}"
                    f"({', '.join(needed)})."
                )
            if known.keys() <= {*taken}:
                return function(*args, **given)
            watched = [known.pop(name, None) for name in _SHOWN]
            if any(watched):
                _warn(f"{function.__name__}({', '.join(_SHOWN)}) is `with hc.progress(...):` now")
                with progress(_Called(*watched)):
                    return call(**known)  # type: ignore[call-arg]
            for old in [name for name in known if name in moved]:
                value, home = known.pop(old), homes.get(old)
                if home is None:
                    new = (renamed or {})[old].put(known, value)
                else:
                    name, kind = home
                    known[name] = replace(as_value(kind, known.get(name), name), **{old: value})
                    new = f"{name}=hc.{kind.__name__}({old}=...)"
                _warn(f"{function.__name__}({old}=...) is {new} now")
            return function(**known)  # type: ignore[call-arg]

        call.__dict__["old_keywords"] = moved
        return call

    return decorate


#: What showed progress, and `hc.progress` shows now.
_SHOWN = ("progress", "announce", "telling")


def _warn(what: str) -> None:
    text = f"{what}; the old keyword will be removed in the next release."
    warnings.warn(text, FutureWarning, stacklevel=3)


class _Called:
    """Shows progress to functions, as an earlier release did."""

    def __init__(self, watch: Any = None, say: Any = None, telling: Any = None) -> None:
        wide = watch is not None and len(signature(watch).parameters) > 2
        self._telling = telling or (
            lambda title, unit: nullcontext(
                (lambda done, total: watch(done, total, title)) if wide else watch
            )
        )
        self.say = say or (lambda what: None)
        self._open: list[Any] = []

    def start(self, total: int, title: str) -> None:
        shown = self._telling(title, "parts")
        self._open.append([0, total, shown, shown.__enter__()])

    def advance(self, n: int = 1) -> None:
        work = self._open[-1]
        work[0] += n
        if work[3] is not None:
            work[3](work[0], work[1])

    def done(self) -> None:
        self._open.pop()[2].__exit__(None, None, None)


def _needed(function: Callable[..., Any]) -> list[str]:
    """What a call must give, but for the object that a method belongs to."""
    every = signature(function).parameters.values()
    plain = [one for one in every if one.kind is one.POSITIONAL_OR_KEYWORD]
    return [one.name for one in plain if one.default is one.empty]
