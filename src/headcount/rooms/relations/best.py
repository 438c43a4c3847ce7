"""The best head for each dependency relation, beside the best fixed offset: Clark's Table 1.

Clark et al., BlackBoxNLP 2019, Table 1, took both from the sentences they report. Here head and
offset are chosen on one half of the sentences and judged on the other; what choosing and judging on
all of them gives stands beside it, under the name *naive*.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import norm

from headcount.errors import InputError
from headcount.records import NA, STACKS, Head
from headcount.stats import holm

_KEY = ["stack", "relation", "direction"]
_NAMES = ["head", "direction"]
_FIGURES = ["n", "accuracy", "low", "high", "baseline", "offset", "p_adjusted", "control", "p"]
_NAIVE = [*_NAMES, *_FIGURES[:-3]]


def best_heads(
    relations: pd.DataFrame,
    *,
    support: int = 100,
    directions: Collection[str] | None = None,
    without: Collection[str] = ("root", "punct"),
) -> pd.DataFrame:
    """One row for each stack and relation with at least `support` arcs, `all` and then by arcs.

    `relations` is `table.details["relations"]` of a survey with a treebank. The best head is the
    best in any of the directions that have so many arcs: a stack that looks back only sees a
    relation one way more than the other. Each row has its head, direction, accuracy with its
    interval, the best fixed offset with its accuracy (`baseline`), and what the best head of a
    random twin gets (`control`), all on the half of the sentences that chose none of them.
    `p_adjusted` is corrected over all heads and relations, `p_chosen` over the rows of this table:
    heads were chosen elsewhere, so these are all the tests that it makes.

    >>> import headcount as hc
    >>> from headcount.bundle import sample
    >>> subject = hc.load("translator", device="cpu")
    >>> ask = {"treebank": sample.path(), "stacks": ["enc"], "roles": [hc.roles.Syntactic()]}
    >>> table = hc.survey(subject, **ask)
    >>> best_heads(table.details["relations"])["relation"].tolist()[:3]
    ['all', 'nsubj', 'det']
    """
    frame = relations[~relations["relation"].isin(list(without))]
    if directions is not None:
        frame = frame[frame["direction"].isin(list(directions))]
    arcs = _arcs(frame)
    frame, most = frame[arcs >= support], 0 if frame.empty else int(arcs.max())
    if frame.empty:
        raise InputError(
            f"No relation has {support} arcs, the most that one has are {most}; give a larger "
            "treebank."
        )
    rows = [
        _row(str(stack), str(relation), group)
        for (stack, relation), group in frame.groupby(["stack", "relation"], sort=False)
    ]
    rows.sort(
        key=lambda row: (STACKS.index(row["stack"]), row["relation"] != "all", -row["naive_n"])
    )
    found = pd.DataFrame(rows)
    tested = found["p"].notna().to_numpy()
    found.loc[tested, "p_chosen"] = holm(found["p"].to_numpy(float)[tested])
    return found if "control" in relations else found.drop(columns="control")


def _arcs(frame: pd.DataFrame) -> pd.Series:
    """For each row, the arcs of its relation and direction on all sentences."""
    there = frame["n"].where(frame["split"] == "all")
    return there.groupby([frame[name] for name in _KEY]).transform("max")


def _row(stack: str, relation: str, group: pd.DataFrame) -> dict[str, Any]:
    """The head chosen on `select` as it does on `report`, and the naive best of all."""
    by_split = dict(iter(group.groupby("split")))
    naive, chosen = _best(by_split["all"]), _best(by_split.get("select"))
    judged = None if chosen is None else _same_head(by_split.get("report"), chosen)
    return {
        "stack": stack,
        "relation": relation,
        **_figures(judged, [*_NAMES, *_FIGURES]),
        **{f"naive_{name}": value for name, value in _figures(naive, _NAIVE).items()},
    }


def _best(rows: pd.DataFrame | None) -> pd.Series | None:
    return None if rows is None else rows.iloc[int(rows["accuracy"].argmax())]


def _same_head(rows: pd.DataFrame | None, chosen: pd.Series) -> pd.Series | None:
    if rows is None:
        return None
    key = ["layer", "head", "direction"]
    same = rows[(rows[key] == chosen[key]).all(axis=1)]
    return same.iloc[0] if len(same) else None


def _figures(row: pd.Series | None, names: list[str]) -> dict[str, Any]:
    """The names and figures of a row; nothing where there is no row."""
    if row is None:
        return {name: NA if name in _NAMES else np.nan for name in names}
    head = str(Head(row["stack"], int(row["layer"]), int(row["head"])))
    return {name: row.get(name, np.nan) for name in names} | {"head": head}


def not_shown(best: pd.DataFrame, level: float = 0.05) -> str:
    """What a table of best heads cannot tell, and how many more sentences might; "" if it all can.

    The lead of each head over its offset has the error that its p value implies; 80% power.

    >>> row = {"relation": "obj", "accuracy": 0.6, "baseline": 0.5, "p": 0.1, "p_chosen": 0.1}
    >>> not_shown(pd.DataFrame([row, row | {"relation": "obl", "accuracy": 0.4, "p": 0.9}]))
    'Not significant: obj +10.0 points (about 4.8 times the sentences would show it); no lead: obl.'
    """
    tested = best[best["p_chosen"] > level]
    lead = tested["accuracy"] - tested["baseline"]
    aim = norm.isf(level / max(best["p"].notna().sum(), 1)) + norm.isf(0.2)
    times = (aim / np.asarray(norm.isf(tested["p"].clip(1e-12, 0.49)))) ** 2
    ahead = [
        f"{name} {100 * points:+.1f} points (about {more:.2g} times the sentences would show it)"
        for name, points, more in zip(tested["relation"], lead, times, strict=True)
        if points > 0
    ]
    parts = ["Not significant: " + ", ".join(ahead)] if ahead else []
    behind = tested["relation"][lead <= 0].tolist()
    parts += [f"{'no' if ahead else 'No'} lead: {', '.join(behind)}"] if behind else []
    return "; ".join(parts) + "." * bool(parts)
