"""Settings of a recipe from the tables of a TOML file, with unknown keys refused by name."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

from headcount.errors import InputError

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
