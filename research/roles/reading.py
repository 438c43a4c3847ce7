"""Figures of one survey, found by name."""

from __future__ import annotations

from typing import Any

__all__ = [
    "Survey",
    "Surveys",
    "annotated",
    "best",
    "by_layer",
    "layer_of",
    "role_heads",
    "twin",
    "verdicts",
]

Survey = dict[str, Any]
Surveys = dict[str, Survey]


def annotated(surveys: Surveys) -> dict[str, Survey]:
    """Each encoder on the first treebank that it was surveyed on: EWT, else GUM."""
    found: dict[str, Survey] = {}
    for short, title in (("minilm", "MiniLM"), ("e5", "e5-small")):
        banks = [bank for bank in ("ewt", "gum") if f"{short}-{bank}" in surveys]
        found |= {f"{title}, {bank.upper()}": surveys[f"{short}-{bank}"] for bank in banks[:1]}
    return found


def layer_of(head: str) -> int:
    """The layer in a head's name.

    >>> layer_of("enc.2.8")
    2
    """
    return int(head.split(".")[1])


def best(survey: Survey, relation: str, direction: str | None = None) -> dict[str, Any] | None:
    """The row of a relation's best encoder head; in any direction where none is named."""
    rows = survey.get("best" if direction is None else "directions", [])
    for row in rows:
        same = row["stack"] == "enc" and row["relation"] == relation
        if same and direction in (None, row["direction"]) and row["accuracy"] is not None:
            return dict(row)
    return None


def by_layer(survey: Survey, column: str, stack: str = "enc") -> list[float]:
    """The mean of a column over the heads of each layer."""
    values: dict[int, list[float]] = {}
    for head, value in zip(survey["index"], survey["columns"].get(column, ()), strict=False):
        if head.startswith(stack + ".") and value is not None:
            values.setdefault(layer_of(head), []).append(value)
    return [sum(values[layer]) / len(values[layer]) for layer in sorted(values)]


def verdicts(survey: Survey, role: str) -> list[dict[str, Any]]:
    """The verdicts of a role."""
    return [row for row in survey["roles"] if row["role"] == role]


def role_heads(survey: Survey, stack: str) -> dict[str, list[str]]:
    """Role to the heads of a stack that have it, each once."""
    heads: dict[str, dict[str, None]] = {}
    for row in survey["roles"]:
        if row["head"].startswith(stack + "."):
            heads.setdefault(row["role"], {})[row["head"]] = None
    return {role: list(found) for role, found in heads.items()}


def twin(survey: Survey, column: str, stack: str = "enc") -> float | None:
    """The highest figure of any head of the random twin; None where there was none."""
    for row in survey.get("twin", []):
        if row["column"] == column and row["stack"] == stack:
            return float(row["max"])
    return None
