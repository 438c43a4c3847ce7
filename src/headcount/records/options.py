"""Options as values: fields of a small frozen dataclass, each with its default and its meaning.

A function of the library hands such a value on instead of a list of parameters, and the command
line makes its options of the same fields (`headcount.cli.options`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from headcount.errors import CONVENTIONS


def option(
    default: Any,
    metavar: str | None,
    help: str,
    *flags: str,
    choices: tuple[str, ...] = (),
    least: int | None = None,
    panel: str | None = None,
) -> Any:
    """A field of a bundle of options: its default, the word for its value, and what it means.

    The flag is the field's name unless `flags` say otherwise; `choices` and `least` are checked
    by the command line before anything is loaded; `panel` is the heading in its help.
    """
    about = {"metavar": metavar, "help": help, "flags": flags, "choices": choices}
    return field(default=default, metadata=about | {"least": least, "panel": panel})


@dataclass(frozen=True)
class WorkOptions:
    """How texts or examples are gone through.

    >>> WorkOptions(limit=100)
    WorkOptions(convention='headcount', limit=100, seed=None, batch_size=None)
    """

    convention: str = option(
        "headcount",
        "WHOSE",
        "Whose definitions: headcount's, those of the papers' text (paper), or those of the "
        "authors' programs (code).",
        choices=CONVENTIONS,
    )
    limit: int | None = option(
        None, "N", "Use so many sentences: the first, or with --seed a random sample.", least=1
    )
    seed: int | None = option(None, "N", "Seed of everything drawn at random.")
    batch_size: int | None = option(
        None,
        "N",
        "Sentences per forward pass (default: by their tokens in a survey, else 16); never changes "
        "the numbers.",
        least=1,
    )

    @property
    def examples(self) -> int:
        """Examples per forward pass of what does not choose by their tokens."""
        return self.batch_size or 16
