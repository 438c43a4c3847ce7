"""Settings of a recipe from the tables of a TOML file, with unknown keys refused by name; and how a
command ends whose input is wrong."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

from headcount.errors import HeadcountError, InputError

Kind = TypeVar("Kind")


def filled(kind: type[Kind], values: dict[str, Any], path: str | Path) -> Kind:
    """A dataclass of settings from one table."""
    known = [each.name for each in fields(kind)]  # type: ignore[arg-type]
    for key in values:
        if key not in known:
            raise InputError(
                f"{path} sets {kind.__name__.lower()}.{key}, which the recipe does not know; "
                f"it knows {', '.join(known)}."
            )
    return kind(**values)


def told(work: Callable[[], object]) -> int:
    """The exit status of some work; a mistake that has a name is told in a sentence."""
    try:
        work()
    except HeadcountError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    return 0
