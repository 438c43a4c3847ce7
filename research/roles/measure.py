"""Run one survey of the list."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import headcount as hc
from headcount.rooms.features.feature import Features
from headcount.rooms.rarity.rare import Rare
from headcount.surveys.roles.role import Role

from .keep import kept, plain

__all__ = ["AGAIN", "measured", "measured_again"]

#: Roles that can be measured again alone, and what is kept of them beside their verdicts.
AGAIN: dict[str, tuple[Callable[[], Role], tuple[str, ...]]] = {
    "feature": (Features, ("features", "first_row")),
    "rare": (Rare, ("rarity",)),
}

COMMAND = "python -m research.roles"
#: Models that neither come with headcount nor are fetched.
TRAINED = ("en-ru", "translator-lohelp")
#: What `make models TRAIN=all` calls a model that has another name here.
RECIPES = {"en-ru": "translator-ru"}
_FILES = {
    "text": "corpus",
    "treebank": "treebank",
    "coref": "coref",
    "arguments": "arguments",
    "parser": "parser",
}


def measured(plan: dict[str, Any], data: Path, translators: Path | None) -> dict[str, Any]:
    """The survey of one plan: what the page needs of its table, and where that comes from."""
    began = time.monotonic()
    table = hc.survey(_subject(plan["model"], translators), **_given(plan, data))
    seconds = round(time.monotonic() - began, 1)
    origin = _origin(table.provenance)
    return {"plan": plan, "seconds": seconds, **kept(table), "provenance": plain(origin)}


def measured_again(
    roles: Sequence[str],
    survey: dict[str, Any],
    plan: dict[str, Any],
    data: Path,
    translators: Path | None,
) -> dict[str, Any]:
    """A survey with some roles measured again, by today's rules; all else stays as it was."""
    given = _given(plan, data) | {"roles": [AGAIN[role][0]() for role in roles], "columns": []}
    table = hc.survey(_subject(plan["model"], translators), **given)
    found = kept(table)
    verdicts = [row for row in survey["roles"] if row["role"] not in roles] + found["roles"]
    again = survey.get("again", {}) | dict.fromkeys(roles, plain(_origin(table.provenance)))
    names = [name for role in roles for name in AGAIN[role][1] if name in found]
    figures = {name: found[name] for name in names}
    columns = {name: found["columns"][name] for name in _columns(roles) if name in found["columns"]}
    figures["columns"] = survey["columns"] | columns
    if "twin" in found:
        rest = [row for row in survey.get("twin", []) if row["column"] not in columns]
        figures["twin"] = rest + [row for row in found["twin"] if row["column"] in columns]
    return survey | figures | {"plan": plan, "roles": verdicts, "again": again}


def _columns(roles: Sequence[str]) -> list[str]:
    """Columns that belong to these roles."""
    return ["rare", "rare_two"] if "rare" in roles else []


def _subject(model: str, translators: Path | None) -> hc.Subject:
    if model not in TRAINED:
        return hc.load(model, device="cpu")
    if translators is None:
        raise SystemExit(f"{model} is asked for: pass --translators DIR, the folder that holds it")
    own, made = translators / model, translators / RECIPES.get(model, model)
    return hc.load(str(made if made.is_dir() and not own.is_dir() else own), device="cpu")


def _given(plan: dict[str, Any], data: Path) -> dict[str, Any]:
    """The arguments of the survey."""
    given: dict[str, Any] = {_FILES[key]: str(data / plan[key]) for key in _FILES if key in plan}
    given |= {"limit": plan.get("limit"), "seed": 0 if "limit" in plan else None}
    if "frequencies" in plan:
        given["frequencies"] = plan["frequencies"]
    if plan.get("control"):
        given["control"] = "random-init"
    # Voita: positional heads have a confidence above 0.8, with ends of sentence alone left out.
    return given | {"roles": True, "confidence_without": "separator"}


def _origin(told: dict[str, Any]) -> dict[str, Any]:
    """The provenance without the folders and the platform of the machine it ran on."""
    wanted = ("weights", "convention", "seed", "settings", "versions", "time")
    origin: dict[str, Any] = {name: told[name] for name in wanted if name in told}
    origin["model"] = Path(str(told.get("model"))).name
    origin["corpora"] = {Path(name).name: about for name, about in told.get("corpora", {}).items()}
    return origin | {"command": COMMAND}
