"""Which options belong to which score, sorted out before any work begins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from headcount.errors import UsageError

__all__ = ["SCORES", "column_of", "options_by_score", "read_names"]

#: The scores that run the model, and the options of each.
SCORES: dict[str, tuple[str, ...]] = {
    "gradient": ("per", "normalize"),
    "ablation": ("mode", "unit", "metric"),
    "relevance": ("per", "rule"),
}
#: Two scores have an option `per`; its words tell which one is meant.
PER = {"gradient": ("example", "token", "batch"), "relevance": ("step", "sentence")}


def read_names(by: str | Sequence[str]) -> list[str]:
    """The scores asked for, each once: a list, or words with commas between.

    >>> read_names("gradient, confidence,gradient")
    ['gradient', 'confidence']
    """
    words = by.split(",") if isinstance(by, str) else list(by)
    names = list(dict.fromkeys(word.strip() for word in words if word.strip()))
    if not names:
        raise UsageError(f"No score was asked for; choose {', '.join(SCORES)}, or a column.")
    return names


def options_by_score(names: Sequence[str], options: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The options of each score; one that no score asked for takes is refused.

    >>> options_by_score(["gradient", "relevance"], {"per": "token,sentence", "mode": None})
    {'gradient': {'per': 'token'}, 'relevance': {'per': 'sentence'}}
    """
    given = {key: value for key, value in options.items() if value is not None}
    sorted_out: dict[str, dict[str, Any]] = {name: {} for name in names}
    for key, value in given.items():
        takers = [name for name in names if key in SCORES.get(name, ())]
        if not takers:
            owners = " or ".join(name for name, keys in SCORES.items() if key in keys)
            raise UsageError(
                f"{key} is '{value}', an option of {owners}, and the scores asked for are "
                f"{', '.join(names)}; leave {key} out."
            )
        for name in takers:
            told = _own_words(name, takers, str(value)) if key == "per" else value
            if told:
                sorted_out[name][key] = told
    return sorted_out


def column_of(name: str, options: Mapping[str, Any]) -> str:
    """The column that a score fills: ablation has one for each unit.

    >>> column_of("ablation", {"unit": "others"}), column_of("gradient", {})
    ('ablation_others', 'gradient')
    """
    unit = options.get("unit") or "head"
    return f"ablation_{unit}" if name == "ablation" and unit != "head" else name


def _own_words(name: str, takers: Sequence[str], value: str) -> str:
    """What of `per` is for a score: all of it where no other takes it, else its own words."""
    if len(takers) == 1:
        return value
    words = [word.strip() for word in value.split(",")]
    known = [word for score in takers for word in PER[score]]
    for word in words:
        if word not in known:
            raise UsageError(f"per is '{word}'; choose {', '.join(known[:-1])} or {known[-1]}.")
    return ",".join(word for word in words if word in PER[name])
