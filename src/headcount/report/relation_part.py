"""Relations: for each head those it follows best, and for each relation its best head."""

from __future__ import annotations

from typing import Any

import pandas as pd

from headcount.heads import Head
from headcount.report.safe_json import figure
from headcount.report.source import Source

__all__ = ["relation_part"]

#: So many relations of a head are kept: those furthest above their baseline.
_MOST, _MOST_OF_MANY = 10, 6
_MANY_HEADS = 400
_ASKED = ["stack", "relation", "direction"]
_KEYS = ["stack", "layer", "head", "relation", "direction"]


def relation_part(source: Source) -> dict[str, Any] | None:
    """The questions with their baselines, each head's best rows, and the best head of each."""
    frame = source.frame("relations")
    if frame is None:
        return None
    held = _measured(frame)
    asked = held.drop_duplicates(_ASKED).reset_index(drop=True)
    numbers = {tuple(row): place for place, row in enumerate(asked[_ASKED].values.tolist())}
    questions = [_question(row) for row in asked.to_dict("records")]
    return {
        "note": _note(str(held["split"].iloc[0]), int(held["p_adjusted"].notna().sum())),
        "questions": questions,
        "heads": _by_head(source, held, numbers),
        "best": _best(source, held, _promised(frame), numbers),
    }


def _note(split: str, tests: int) -> str:
    """How heads were chosen, and what is faded."""
    halves = ", chosen on one half of the sentences and measured on the other,"
    return (
        f"The best head of each relation{halves if split == 'report' else ''} against the best "
        "fixed offset. Faded rows are less than 10 points above it, or not beyond chance after "
        f"correction for {tests:,} tests."
    )


def _measured(frame: pd.DataFrame) -> pd.DataFrame:
    """One split of the data: the held-out half where heads were chosen on the other."""
    splits = set(frame["split"])
    split = next((name for name in ("report", "all") if name in splits), next(iter(splits)))
    held = frame[(frame["split"] == split) & frame["accuracy"].notna()]
    return held.assign(gain=held["accuracy"] - held["baseline"].fillna(0))


def _question(row: dict[Any, Any]) -> dict[str, Any]:
    words = {name: str(row[name]) for name in _ASKED}
    numbers = {"baseline": figure(row["baseline"], 3), "offset": figure(row["offset"])}
    return {**words, "n": int(row["n"]), **numbers}


def _by_head(
    source: Source, held: pd.DataFrame, numbers: dict[tuple[Any, ...], int]
) -> list[list[list[Any]]]:
    places = source.places
    found: list[list[list[Any]]] = [[] for _ in places]
    most = _MOST if len(places) <= _MANY_HEADS else _MOST_OF_MANY
    ranked = held.sort_values("gain", ascending=False, kind="stable")
    best = ranked.groupby(["stack", "layer", "head", "relation"], sort=False).head(1)
    for row in best.groupby(["stack", "layer", "head"], sort=False).head(most).to_dict("records"):
        head = _head(row)
        if head in places:
            found[places[head]].append(_row(row, numbers))
    return found


def _promised(frame: pd.DataFrame) -> pd.DataFrame:
    """What heads gained on the half that they were chosen on."""
    chosen = frame[frame["split"] == "select"]
    gain = chosen["accuracy"] - chosen["baseline"].fillna(0)
    return chosen[_KEYS].assign(promised=gain).drop_duplicates(_KEYS)


def _best(
    source: Source,
    held: pd.DataFrame,
    promised: pd.DataFrame,
    numbers: dict[tuple[Any, ...], int],
) -> list[list[Any]]:
    """One row a relation: its best head and direction, chosen on the other half where there is."""
    selected = held[held["selected"]] if "selected" in held and held["selected"].any() else held
    ranked = selected.merge(promised, on=_KEYS, how="left")
    ranked = ranked.sort_values(["promised", "gain"], ascending=False, kind="stable")
    places = source.places
    best = ranked.groupby(["stack", "relation"], sort=False).head(1)
    rows = best.sort_values("gain", ascending=False, kind="stable").to_dict("records")
    return [[places[_head(row)], *_row(row, numbers)] for row in rows if _head(row) in places]


def _row(row: dict[Any, Any], numbers: dict[tuple[Any, ...], int]) -> list[Any]:
    key = tuple(row[name] for name in _ASKED)
    shares = [figure(row[name], 3) for name in ("accuracy", "low", "high")]
    return [numbers[key], *shares, figure(row["p_adjusted"], 2)]


def _head(row: dict[Any, Any]) -> Head:
    return Head(str(row["stack"]), int(row["layer"]), int(row["head"]))
