"""Do two measures, two data sets or two seeds rank heads alike, and do heads with a role matter?

Michel et al., NeurIPS 2019, section 3.4, compare ablations of single heads on two data sets by
Pearson's correlation; Spearman and Kendall ask about the order alone. That heads with a function
are the important ones is what Voita et al., ACL 2019, conclude from their figures 1, 2 and 8.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from headcount import stats
from headcount.errors import UsageError
from headcount.records import HeadTable
from headcount.stats import Floats, Kind
from headcount.surveys.roles import says_of

#: The question that scores answer, in the table's menus.
GROUP = "How much it matters"
#: Enough for the ends of an interval; nothing is tested with them.
DRAWS = 2_000


def agreement(
    tables: HeadTable | Mapping[str, HeadTable],
    columns: Sequence[str] | None = None,
    *,
    kinds: Sequence[Kind] = ("spearman", "kendall", "pearson"),
    draws: int = DRAWS,
    seed: int = 0,
) -> pd.DataFrame:
    """Every pair of scores, a row each: over all heads, then stack by stack.

    One table compares its columns (by default all that rank heads); several, by the name of their
    data or seed, also each column with itself: "gradient on tatoeba" with "gradient on lohelp".
    Columns whose lower values rank first are turned round. Intervals come from resampled heads.
    The frame has first, second, stack, kind, value, low, high, heads and note.

    >>> from headcount.records.heads import Head
    >>> heads = [Head("enc", 0, index) for index in range(4)]
    >>> table = HeadTable.of(heads, {"gradient": [1, 2, 3, 4], "ablation": [2, 1, 3, 4]})
    >>> found = agreement(table, kinds=["spearman"])
    >>> found[["first", "second", "stack", "value", "heads"]].values.tolist()
    [['gradient', 'ablation', 'all', 0.8, 4]]
    """
    scores, stacks = _scores(tables, columns)
    parts = []
    for stack, heads in _groups(stacks).items():
        chosen = {name: values[heads] for name, values in scores.items()}
        found = stats.agreement_matrix(chosen, kinds, draws=draws, seed=seed)
        found.insert(2, "stack", stack)
        parts.append(found)
    return pd.concat(parts, ignore_index=True)


def compared(table: HeadTable, names: Sequence[str] = ()) -> pd.DataFrame | None:
    """Agreement of the scores of a table, and of the columns named; None where there is but one."""
    columns = list(dict.fromkeys([*importance_columns(table), *names]))
    return agreement(table, columns) if len(columns) > 1 else None


def importance_columns(table: HeadTable) -> list[str]:
    """The columns that say how much a head matters, and confidence, which often goes with it."""
    return [
        name
        for name in table.names
        if table.column(name).direction is not None
        and (table.column(name).group == GROUP or name == "confidence")
    ]


def _scores(
    tables: HeadTable | Mapping[str, HeadTable], columns: Sequence[str] | None
) -> tuple[dict[str, Floats], list[str]]:
    """Scores by name, and the stack of each head; all tables must be of the same heads."""
    several = {"": tables} if isinstance(tables, HeadTable) else dict(tables)
    heads = next(iter(several.values())).heads if several else []
    scores: dict[str, Floats] = {}
    for name, table in several.items():
        if table.heads != heads:
            raise UsageError(
                f"The table '{name}' has {len(table)} heads and the first {len(heads)}, not the "
                "same ones; compare tables of one architecture."
            )
        for column in _chosen(table, columns):
            scores[f"{column} on {name}" if name else column] = _ranking(table, column)
    if len(scores) < 2:
        told = ", ".join(scores) or "none"
        raise UsageError(
            f"Agreement needs two scores or more, and there is {told}; give a table with two "
            "columns that rank heads, or two tables by name."
        )
    return scores, [head.stack for head in heads]


def _chosen(table: HeadTable, columns: Sequence[str] | None) -> Sequence[str]:
    if columns is not None:
        return columns
    return importance_columns(table) or table.names


def _ranking(table: HeadTable, column: str) -> Floats:
    """A column's values, turned so that higher ranks first."""
    sign = -1.0 if table.column(column).direction == "lower" else 1.0
    return sign * table.numbers(column)


def _groups(stacks: Sequence[str]) -> dict[str, np.ndarray]:
    """All heads, and those of each stack where there are several."""
    names = list(dict.fromkeys(stacks))
    every = {"all": np.arange(len(stacks))}
    if len(names) < 2:
        return every
    return every | {name: np.flatnonzero(np.array(stacks) == name) for name in names}


# --- Do heads with a role matter more, and go later? --------------------------------------------

#: Rows over several roles: heads that do something, others that look at one place.
ANY_ROLE, ANY_REST = "any function", "any rest"
#: Cliff's delta from which a difference is called large (Romano et al. 2006); an interval that
#: lies within is evidence that there is none so large.
LARGE = 0.474
_ROLE_COLUMNS = (
    "role", "rests", "score", "heads", "others", "layers", "delta", "low", "high", "p",
    "p_adjusted", "smallest_p", "answer",
)  # fmt: skip


def by_role(
    table: HeadTable, columns: Sequence[str] | None = None, *, level: float = 0.05, seed: int = 0
) -> pd.DataFrame:
    """For every role: do its heads matter more than others of the same layer and stack?

    One row a role and score, of a table with verdicts (`details["roles"]`): by default for all
    importance scores, and for `removal_step` where heads were removed. `delta` is Cliff's delta:
    the chance that a head of the role ranks above another head of its layer, minus the reverse,
    with an interval from resampled heads; `p` shuffles roles within layers, two-sided;
    `p_adjusted` is Holm's, over the rows of all functions and of all rest, which are the question,
    and over those of single roles. `answer` is more, less, "no large difference" (the
    interval lies within +-0.474), or "cannot tell". Heads that do something are compared with all
    that do not, and so are those of which only a place is known at which they look ("rests").

    >>> from headcount.records import Head
    >>> heads = [Head("enc", layer, index) for layer in range(4) for index in range(6)]
    >>> roles = pd.DataFrame({"stack": "enc", "layer": range(4), "head": 0, "role": "rare",
    ...                       "rests": False})
    >>> score = [7.0 if head.index == 0 else head.index for head in heads]
    >>> table = HeadTable.of(heads, {"gradient": score}, details={"roles": roles})
    >>> by_role(table, ["gradient"])[["role", "heads", "delta", "answer"]].values.tolist()
    [['any function', 4, 1.0, 'more'], ['rare', 4, 1.0, 'more']]
    """
    if "roles" not in table.details:
        raise UsageError("No head was judged; survey the model with roles first (--roles).")
    heads, names = table.heads, list(columns or ())
    if columns is None:
        names = [name for name in importance_columns(table) if name != "confidence"]
        names += ["removal_step"] * ("removal_step" in table.names)
    groups = _role_groups(table.details["roles"])
    rows = []
    for (role, rests), own in groups.items():
        members = [head in own for head in heads]
        for name in names:
            found = stats.rank_difference(
                _removal(table, name), members, [head[:2] for head in heads], seed=seed
            )
            rows.append(
                (role, rests, name, found.members, found.others, found.strata, found.value,
                 found.low, found.high, found.p, np.nan, found.floor, "")
            )  # fmt: skip
    frame = pd.DataFrame(rows, columns=list(_ROLE_COLUMNS))
    both = frame["role"].isin([ANY_ROLE, ANY_REST])
    for family in (both, ~both):
        frame.loc[family, "p_adjusted"] = stats.holm(frame.loc[family, "p"].to_numpy(dtype=float))
    frame["answer"] = [_answer(row, level) for row in frame.to_dict("records")]
    return frame


def role_sentences(frame: pd.DataFrame) -> list[str]:
    """What `by_role` found for heads with a function and for the others with a role."""
    said, groups = [], {ANY_ROLE: "do a nameable job", ANY_REST: "look much at one place"}
    when = {("removal_step", "more"): "they go later", ("removal_step", "less"): "they go earlier"}
    for role, what in groups.items():
        rows = frame[(frame["role"] == role) & frame["delta"].notna()].to_dict("records")
        if rows:
            figures = "; ".join(
                f"{row['score'].replace('_', ' ')} {row['delta']:+.2f} "
                f"[{row['low']:+.2f}, {row['high']:+.2f}], p {row['p_adjusted']:.2g}, "
                f"{when.get((row['score'], row['answer']), row['answer'])}"
                for row in rows
            )
            first = rows[0]
            said.append(
                f"{first['heads']} heads that {what} against {first['others']} others of their "
                f"layers (Cliff's delta): {figures}."
            )
    return said


def _removal(table: HeadTable, name: str) -> Floats:
    """A score turned so that more is more important; a head that never goes, goes last."""
    values = _ranking(table, name)
    if name == "removal_step" and not np.isnan(values).all():
        return np.where(np.isnan(values), np.nanmax(values) + 1, values)
    return values


def _role_groups(roles: pd.DataFrame) -> dict[tuple[str, bool], set[tuple[str, int, int]]]:
    """The heads of each role, after those of all functions and of all others."""
    every: dict[tuple[str, bool], set[tuple[str, int, int]]] = {}
    says: dict[str, set[tuple[str, int, int]]] = {}
    for row in roles.to_dict("records"):
        head, said = (str(row["stack"]), int(row["layer"]), int(row["head"])), says_of(row)
        every.setdefault((str(row["role"]), said != "job"), set()).add(head)
        says.setdefault(said, set()).add(head)
    does = says.get("job", set())
    resting = says.get("place", set()) - does
    both = {(ANY_ROLE, False): does, (ANY_REST, True): resting}
    return {key: heads for key, heads in (both | every).items() if heads}


def _answer(row: Mapping[Any, Any], level: float) -> str:
    if row["p_adjusted"] <= level:
        return "more" if row["delta"] > 0 else "less"
    small = max(abs(row["low"]), abs(row["high"])) < LARGE
    return "no large difference" if small else "cannot tell"
