"""Markdown tables, and figures as their cells have them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

__all__ = ["NONE", "encoders", "named", "percent", "short", "star", "table", "three"]

NONE = "–"
MODELS = {"minilm": "MiniLM", "e5": "e5-small"}

Survey = dict[str, Any]
Surveys = dict[str, Survey]
Row = dict[str, Any]


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def percent(share: float | None) -> str:
    """A share in percent.

    >>> percent(0.345), percent(None)
    ('34.5', '–')
    """
    return NONE if share is None else f"{100 * share:.1f}"


def three(value: float | None) -> str:
    """A figure with three decimals."""
    return NONE if value is None else f"{value:.3f}"


def star(row: Row) -> str:
    """A star where a head is above its baseline after Holm's correction."""
    return "\\*" if row["p_adjusted"] is not None and row["p_adjusted"] <= 0.05 else ""


def short(row: Row | None) -> str:
    """Best head, best offset and, where there is one, the best head of the random twin."""
    if row is None:
        return NONE
    twin = "" if row.get("control") is None else f" / {percent(row['control'])}"
    return f"{percent(row['accuracy'])}{star(row)} / {percent(row['baseline'])}{twin}"


def named(surveys: Surveys, names: dict[str, str]) -> dict[str, Survey]:
    """Surveys that are there, by the title they go under."""
    return {title: surveys[name] for name, title in names.items() if name in surveys}


def encoders(surveys: Surveys, corpus: str) -> dict[str, Survey]:
    """Both encoders on a corpus."""
    return named(surveys, {f"{short}-{corpus}": title for short, title in MODELS.items()})
