"""Run one survey of the list and keep what the page needs of it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pandas as pd

import headcount as hc
from headcount.best_heads import best_heads

__all__ = ["measured"]

COMMAND = "python -m experiments.roles"
#: Frames of the table that are kept whole; the relations are summed up instead.
WHOLE = ("roles", "coreference", "gap", "noop", "features", "links", "arguments")
_LOST = ("command", "platform")


def measured(plan: dict[str, Any], data: Path, translators: Path | None) -> dict[str, Any]:
    """The survey of one plan: verdicts, best heads, means of the columns, provenance."""
    began = time.monotonic()
    table = hc.survey(_subject(plan["model"], translators), **_given(plan, data))
    return {
        "plan": plan,
        "seconds": round(time.monotonic() - began, 1),
        "heads": len(table.frame),
        "best": _records(best_heads(table.details["relations"]))
        if "relations" in table.details
        else [],
        "columns": {name: _rounded(values.tolist()) for name, values in table.frame.items()},
        "index": [str(head) for head in table.heads],
        **{name: _records(table.details[name]) for name in WHOLE if name in table.details},
        "provenance": _origin(table.provenance),
    }


def _subject(model: str, translators: Path | None) -> hc.Subject:
    if model != "en-ru":
        return hc.load(model, device="cpu")
    if translators is None:
        raise SystemExit("en-ru is asked for: pass --translators DIR, the folder that holds it")
    return hc.load(str(translators / "en-ru"), device="cpu")


def _given(plan: dict[str, Any], data: Path) -> dict[str, Any]:
    """The arguments of the survey."""
    files = {"text": "corpus", "treebank": "treebank", "coref": "coref"}
    files |= {"arguments": "arguments", "parser": "parser"}
    given: dict[str, Any] = {files[key]: str(data / plan[key]) for key in files if key in plan}
    given |= {"limit": plan.get("limit"), "seed": 0 if "limit" in plan else None}
    if plan.get("control"):
        given["control"] = "random-init"
    return given | {"roles": True}


def _origin(told: dict[str, Any]) -> dict[str, Any]:
    """The provenance without folders of the machine it ran on."""
    kept = {name: value for name, value in told.items() if name not in _LOST}
    kept["subject"] = {**kept.get("subject", {}), "source": kept.get("model")}
    kept["corpora"] = {Path(name).name: value for name, value in kept.get("corpora", {}).items()}
    return kept | {"command": COMMAND, "corpus": Path(str(kept.get("corpus", ""))).name}


def _records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = frame.astype(object).where(frame.notna(), None).to_dict("records")
    return [{str(key): _plain(value) for key, value in row.items()} for row in rows]


def _rounded(values: list[Any]) -> list[Any]:
    return [_plain(value) if value == value else None for value in values]


def _plain(value: Any) -> Any:
    if hasattr(value, "item"):
        value = value.item()
    return round(value, 4) if isinstance(value, float) else value
