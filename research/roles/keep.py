"""What the page needs of a survey's table: chosen heads of every question, verdicts, columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

import headcount as hc
from headcount.errors import InputError
from headcount.rooms.relations.relations import DIRECTIONS

__all__ = ["kept", "plain"]

Row = dict[Any, Any]

#: Columns kept for every head.
COLUMNS = (
    "confidence", "first", "separator", "separator_to_separator", "separator_breadth",
    "punctuation", "best_offset", "best_offset_share", "rare", "rare_two", "sink", "induction",
    "induction_effect", "duplicate", "previous_random", "retrieval", "alignment",
    "alignment_read", "source_end",
)  # fmt: skip
#: Frames of figures with a baseline: frame, and what tells its questions apart.
MEANS = {
    "features": ("feature", "origin"),
    "links": ("link",),
    "arguments": ("link",),
}
#: Relations that are told direction by direction.
VOITA = ("nsubj", "obj", "amod", "advmod")
#: What is kept of the gradients of a layer.
NOOP = ("stack", "layer", "target", "texts", "share", "share_low", "share_high", "p_adjusted")
CHOICES = ("coreference", "pronoun_choice")
_VERDICT = ("role", "label", "value", "low", "high", "baseline", "control", "n", "p_adjusted")
_FIGURES = (
    "n", "value", "low", "high", "compared", "compared_low", "compared_high", "baseline",
    "p_adjusted",
)  # fmt: skip
#: A row of a verdict asks the same words as this direction of the resting places.
_ROWS = {"dep->head": "dep->head", "head->dep": "head->dep", "head<-dep": "head->dep"}


def kept(table: hc.HeadTable) -> dict[str, Any]:
    """Everything that is kept, ready for JSON."""
    details = table.details
    there = [name for name in COLUMNS if name in table.frame]
    found: dict[str, Any] = {
        "index": [str(head) for head in table.heads],
        "columns": {name: plain(table.frame[name].tolist(), 3) for name in there},
        "roles": [_verdict(row) for row in details["roles"].to_dict("records")],
    }
    if "relations" in details:
        found |= _relations(details["relations"])
    for name in (name for name in CHOICES if name in details):
        found[name] = _choices(details[name])
    for name in (name for name in MEANS if name in details):
        found[name] = _means(details[name], MEANS[name])
    if "features" in details:
        found["first_row"] = _by_layer(details["features"])
    if "rest_by_relation" in details:
        found["rest"] = _rest(details["rest_by_relation"], details["roles"])
    if "rarity" in details:
        found["rarity"] = _rarity(details["rarity"])
    if "noop_layers" in details:
        found["noop"] = details["noop_layers"][list(NOOP)].to_dict("records")
    if "trial_models" in details:
        found["models"] = details["trial_models"].to_dict("records")
    if "control" in details:
        found["twin"] = details["control"].drop(columns="twin").to_dict("records")
    told: dict[str, Any] = plain(found)
    return told


def _name(row: Any) -> str:
    return f"{row['stack']}.{int(row['layer'])}.{int(row['head'])}"


def _verdict(row: dict[Any, Any]) -> dict[str, Any]:
    """A verdict; the word a sink rests on is a word of the corpus, and stays there."""
    told = {"head": _name(row), **{name: row[name] for name in _VERDICT}}
    return told | {"label": "another token"} if str(row["label"]).startswith("'") else told


def _relations(frame: pd.DataFrame) -> dict[str, Any]:
    """The best head of each relation, in any direction and in each, with the random twin's."""
    tables = {"best": _best(frame)}
    few = frame[frame["relation"].isin(VOITA)]
    tables["directions"] = pd.concat([_best(few, directions=[way]) for way in DIRECTIONS])
    lost = ["naive_n", "naive_low", "naive_high", "naive_offset"]
    kept = {name: table.drop(columns=lost, errors="ignore") for name, table in tables.items()}
    return {name: table.to_dict("records") for name, table in kept.items()}


def _best(frame: pd.DataFrame, **how: Any) -> pd.DataFrame:
    """The best heads; no row where no relation has enough arcs."""
    try:
        return hc.roles.best_heads(frame, **how)
    except InputError:
        return pd.DataFrame()


def _choices(frame: pd.DataFrame) -> list[Row]:
    """For each kind of question and each rule: the head chosen on one half, judged on the other."""
    naive = frame[frame["split"] == "all"].groupby(["stack", "kind"])["accuracy"].max()
    held = frame[(frame["split"] == "report") & frame["selected"].astype(bool)]
    fields = ("kind", "n", "accuracy", "low", "high", "against", "baseline", "p_adjusted", "bias")
    return [
        {"head": _name(row), "naive": naive[row["stack"], row["kind"]]}
        | {name: row[name] for name in fields if name in row}
        for row in held.to_dict("records")
    ]


def _means(frame: pd.DataFrame, questions: Sequence[str]) -> list[Row]:
    """For each question: the head that is highest on one half, as it does on the other.

    Highest in what is compared; where that is nothing, in the value.
    """
    frame = frame.assign(chosen_by=frame["compared"].fillna(frame["value"]))
    rows = []
    for _, group in frame.groupby(["stack", *questions], sort=False):
        parts = dict(iter(group.groupby("split")))
        if {"select", "report"} <= parts.keys():
            chosen = parts["select"].iloc[int(parts["select"]["chosen_by"].argmax())]
            report = parts["report"]
            same = (report["layer"] == chosen["layer"]) & (report["head"] == chosen["head"])
            above = {"heads_above": int((report["p_adjusted"] <= 0.05).sum())}
            rows += [_judged(row, questions) | above for row in report[same].to_dict("records")]
    return rows


def _judged(row: Row, questions: Sequence[str]) -> Row:
    return {"head": _name(row)} | {name: row[name] for name in (*questions, *_FIGURES)}


def _by_layer(frame: pd.DataFrame) -> list[Row]:
    """The mean over heads of what a feature gets from [CLS], by layer (figure 7)."""
    key = ["stack", "layer", "feature"]
    told = frame[(frame["split"] == "all") & (frame["origin"] == "first")]
    whole = told.groupby(key, sort=False)
    return whole[["value", "compared", "baseline"]].mean().reset_index().to_dict("records")


def _rest(frame: pd.DataFrame, roles: pd.DataFrame) -> list[Row]:
    """Mass on a resting place from words with a syntactic head's relation, and from the others."""
    report = frame[frame["split"] == "report"]
    key = ["stack", "layer", "head", "relation", "direction", "rest"]
    by_key = report.set_index(key)[["n", "value", "baseline", "p_adjusted"]]
    found = by_key.to_dict("index")
    rows = []
    for verdict in roles[roles["role"] == "syntactic"].to_dict("records"):
        relation, _, direction = verdict["label"].rpartition(" ")
        for rest in ("separator", "first"):
            head = (verdict["stack"], verdict["layer"], verdict["head"])
            told = {"head": _name(verdict), "label": verdict["label"], "rest": rest}
            figures = found.get((*head, relation, _ROWS[direction], rest))
            rows += [told | figures] if figures else []
    return rows


def _rarity(frame: pd.DataFrame) -> list[Row]:
    """The three heads of each stack that point most often to one of the two rarest tokens."""
    one = frame[frame["target"] == "rare"].set_index(["stack", "layer", "head"])["share"]
    two = frame[frame["target"] == "rare_two"].join(
        one.rename("rarest"), on=["stack", "layer", "head"]
    )
    best = two.sort_values("share", ascending=False).groupby("stack").head(3)
    lost = ["stack", "layer", "head", "target"]
    return [
        {"head": _name(row)} | {name: value for name, value in row.items() if name not in lost}
        for row in best.to_dict("records")
    ]


def plain(value: Any, digits: int = 4) -> Any:
    """Values as JSON has them: so many figures, None for what is not known.

    >>> plain({"share": [0.123456, float("nan")]})
    {'share': [0.1235, None]}
    """
    if isinstance(value, dict):
        return {str(name): plain(one, digits) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one, digits) for one in value]
    value = value.item() if hasattr(value, "item") else value
    if isinstance(value, float):
        return None if value != value else float(f"{value:.{digits}g}")
    return None if value is pd.NA else value
