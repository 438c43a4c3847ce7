"""Run one survey of the list."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import headcount as hc

from .keep import kept, plain

__all__ = ["measured"]

COMMAND = "python -m experiments.roles"
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


def _subject(model: str, translators: Path | None) -> hc.Subject:
    if model != "en-ru":
        return hc.load(model, device="cpu")
    if translators is None:
        raise SystemExit("en-ru is asked for: pass --translators DIR, the folder that holds it")
    return hc.load(str(translators / "en-ru"), device="cpu")


def _given(plan: dict[str, Any], data: Path) -> dict[str, Any]:
    """The arguments of the survey."""
    given: dict[str, Any] = {_FILES[key]: str(data / plan[key]) for key in _FILES if key in plan}
    given |= {"limit": plan.get("limit"), "seed": 0 if "limit" in plan else None}
    if plan.get("control"):
        given["control"] = "random-init"
    return given | {"roles": True}


def _origin(told: dict[str, Any]) -> dict[str, Any]:
    """The provenance without the folders and the platform of the machine it ran on."""
    wanted = ("weights", "convention", "seed", "settings", "versions", "time")
    origin: dict[str, Any] = {name: told[name] for name in wanted if name in told}
    origin["model"] = Path(str(told.get("model"))).name
    origin["corpora"] = {Path(name).name: about for name, about in told.get("corpora", {}).items()}
    return origin | {"command": COMMAND}
