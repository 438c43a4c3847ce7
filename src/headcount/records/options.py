"""Options as values: fields of a small frozen dataclass, each with its default and its meaning.

A function of the library takes such a value in place of a list of parameters, and the command
line makes its options of the same fields (`headcount.cli.options`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from typing import Any, Self, TypeVar

from headcount.errors import CONVENTIONS, UsageError

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
        "Use so many sentences: the first, or with --seed a random sample.",
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
