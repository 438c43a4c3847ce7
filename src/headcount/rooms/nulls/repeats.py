"""Which verdicts repeat on other corpora: a name that one corpus gives is not yet a head's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from headcount.errors import UsageError
from headcount.records import HeadTable, Run, writable_run
from headcount.surveys.roles import HEAD_KEY

_VERDICT = [*HEAD_KEY, "role", "label"]


def repeats(tables: Mapping[str, HeadTable | Run | str | Path]) -> pd.DataFrame:
    """A row for each verdict of any corpus: on how many of them it stands, and on which.

    `tables` are surveys of one model with roles, or runs that have them, by the name of the corpus.

    >>> roles = pd.DataFrame({"stack": "enc", "layer": 0, "head": [0, 1], "role": "rare",
    ...                       "label": "rarest"})
    >>> from headcount.records import Head
    >>> heads = [Head("enc", 0, 0), Head("enc", 0, 1)]
    >>> one, two = (HeadTable.of(heads, {}, details={"roles": rows}) for rows in (roles, roles[:1]))
    >>> repeats({"EWT": one, "GUM": two})[["head", "repeats", "corpora", "on"]].values.tolist()
    [[0, 2, 2, 'EWT, GUM'], [1, 1, 2, 'EWT']]
    """
    opened = {name: _opened(one) for name, one in tables.items()}
    if len(opened) < 2:
        raise UsageError(f"{len(opened)} survey repeats nothing; give two corpora or more by name.")
    first = next(iter(opened.values()))
    found = []
    for name, table in opened.items():
        if "roles" not in table.details:
            raise UsageError(f"No head was judged on {name}; survey it with roles (roles=True).")
        was, now = first.provenance.get("weights"), table.provenance.get("weights")
        if table.heads != first.heads or was != now:
            raise UsageError(f"The survey of {name} is of another model; give surveys of one.")
        found.append(table.details["roles"][_VERDICT].drop_duplicates().assign(on=name))
    rows = pd.concat(found).groupby(_VERDICT, sort=False)["on"]
    frame = rows.agg(repeats="count", on=", ".join).reset_index()
    frame.insert(len(_VERDICT) + 1, "corpora", len(opened))
    return frame


def jaccard_by_role(frame: pd.DataFrame) -> pd.DataFrame:
    """How alike the verdicts of two corpora are: the share of all that both have, mean of pairs.

    >>> frame = pd.DataFrame({"role": "rare", "on": ["EWT, GUM", "EWT"], "corpora": 2})
    >>> jaccard_by_role(frame)[["role", "verdicts", "jaccard"]].values.tolist()
    [['rare', 2, 0.5]]
    """
    names = sorted({name for one in frame["on"] for name in one.split(", ")})
    rows = []
    for role, own in frame.groupby("role", sort=False):
        on = [set(one.split(", ")) for one in own["on"]]
        shares = []
        for pair in combinations(names, 2):
            either = [len(one & set(pair)) for one in on if one & set(pair)]
            shares += [np.mean([count == 2 for count in either])] if either else []
        rows.append((role, len(own), float(np.mean(shares)) if shares else np.nan))
    return pd.DataFrame(rows, columns=["role", "verdicts", "jaccard"])


def survey_each(
    measure: Callable[..., HeadTable], treebanks: Mapping[str, Any], run: Any
) -> HeadTable:
    """The survey of the first treebank, whose roles say on how many of all they stand.

    `details["repeats"]` has the verdicts of every treebank, `details["jaccard"]` how alike they
    are. The first one's finished work is kept in the run.
    """
    if len(treebanks) < 2:
        raise UsageError("One treebank by name repeats nothing; give two or more, or one alone.")
    names = list(treebanks)
    tables = {name: measure(treebank=treebanks[name]) for name in names[1:]}
    first = measure(treebank=treebanks[names[0]], run=run)
    frame = repeats({names[0]: first, **tables})
    alike = jaccard_by_role(frame)
    first.details["repeats"], first.details["jaccard"] = frame, alike
    shares = ", ".join(f"{row.role} {row.jaccard:.2f}" for row in alike.itertuples())
    first.provenance.setdefault("remarks", []).append(
        f"Verdicts are those of {names[0]}; of all on {', '.join(names)}, two corpora share "
        f"(Jaccard): {shares or 'none was found'}."
    )
    counted = frame[[*_VERDICT, "repeats", "corpora"]]
    first.details["roles"] = first.details["roles"].merge(counted, on=_VERDICT, how="left")
    if run is not None:
        with writable_run(run) as kept:
            assert kept is not None
            kept.write_table(first, replace=True)
    return first


def _opened(one: HeadTable | Run | str | Path) -> HeadTable:
    if isinstance(one, HeadTable):
        return one
    return (one if isinstance(one, Run) else Run.open(one, create=False)).read_table()
