"""Importance over training: the same score at several checkpoints of one model.

Michel et al., NeurIPS 2019, section 6, ask when in training heads begin to differ; here: how soon
their order is the one that they end with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import numpy as np
import pandas as pd

from headcount.errors import UsageError
from headcount.models import Subject
from headcount.records import STACKS, Head, HeadTable
from headcount.rooms.agreement.ranks import Kind, rank_agreement

DRAWS = 2_000


def dynamics(
    checkpoints: Iterable[tuple[int, Subject]],
    score: Callable[[Subject], HeadTable],
    column: str | None = None,
) -> pd.DataFrame:
    """Score checkpoints one after the other: step, stack, layer, head, value and rank, 1 the first.

    `checkpoints` are (step, subject) pairs, best from a generator that loads one at a time;
    `score` makes a table of each, e.g. ``lambda subject: hc.score(subject, task)``, and `column`
    names its score, where it has several.
    """
    scores: dict[int, dict[Head, float]] = {}
    for step, subject in checkpoints:
        table = score(subject)
        name = column or _only(table)
        scores[step] = dict(zip(table.heads, table.numbers(name).tolist(), strict=True))
    return _frame(scores)


def settling(
    frame: pd.DataFrame,
    kind: Kind = "spearman",
    *,
    top: float = 0.1,
    draws: int = DRAWS,
    seed: int = 0,
) -> pd.DataFrame:
    """How near each checkpoint's order of heads is to the last one's, over all heads and by stack.

    A row a step and stack: `value`, `low` and `high` of the rank agreement, `heads`, and `kept`,
    the share of the `top` heads at the end that are among as many top heads already.

    >>> heads = [("enc", 0, index) for index in range(4)]
    >>> rows = [(step, *head, value) for step, values in {1: [1, 2, 4, 3], 2: [1, 2, 3, 4]}.items()
    ...         for head, value in zip(heads, values, strict=True)]
    >>> frame = pd.DataFrame(rows, columns=["step", "stack", "layer", "head", "value"])
    >>> found = settling(frame, top=0.5)
    >>> found[["step", "stack", "value", "kept"]].values.tolist()
    [[1, 'all', 0.8, 1.0], [2, 'all', 1.0, 1.0]]
    """
    wide = frame.pivot(index=["stack", "layer", "head"], columns="step", values="value")
    rows = []
    for stack, part in _by_stack(wide).items():
        last = part.iloc[:, -1].to_numpy()
        for step in part:
            values = part[step].to_numpy()
            found = rank_agreement(values, last, kind, draws=draws, seed=seed)
            rows.append((step, stack, *found[:4], _kept(values, last, top)))
    columns = ["step", "stack", "value", "low", "high", "heads", "kept"]
    return pd.DataFrame(rows, columns=columns)


def _frame(scores: Mapping[int, Mapping[Head, float]]) -> pd.DataFrame:
    """Long: a row a step and head."""
    _check(scores)
    rows = []
    for step in sorted(scores):
        values = np.array(list(scores[step].values()))
        ranks = np.empty(len(values), dtype=int)
        ranks[np.argsort(-values, kind="stable")] = np.arange(1, len(values) + 1)
        for head, value, rank in zip(scores[step], values, ranks, strict=True):
            rows.append((step, *head, value, rank))
    return pd.DataFrame(rows, columns=["step", "stack", "layer", "head", "value", "rank"])


def _check(scores: Mapping[int, Mapping[Head, float]]) -> None:
    if len(scores) < 2:
        raise UsageError(f"Dynamics needs two checkpoints or more, not {len(scores)}.")
    heads = {step: list(of_step) for step, of_step in scores.items()}
    first, *others = heads
    for step in others:
        if heads[step] != heads[first]:
            raise UsageError(
                f"The checkpoint {step} has other heads than {first}; give checkpoints of one "
                "model."
            )


def _only(table: HeadTable) -> str:
    if len(table.names) != 1:
        raise UsageError(
            f"The table has the columns {', '.join(table.names) or 'none'}; say which of them is "
            "the score, column='gradient'."
        )
    return table.names[0]


def _by_stack(wide: pd.DataFrame) -> dict[str, pd.DataFrame]:
    there = set(wide.index.get_level_values("stack"))
    stacks = [stack for stack in STACKS if stack in there]
    every = {"all": wide}
    return every if len(stacks) < 2 else every | {s: wide.loc[[s]] for s in stacks}


def _kept(values: np.ndarray, last: np.ndarray, top: float) -> float:
    """The share of the last order's top heads that are at the top here too."""
    count = max(1, round(top * len(last)))
    first, end = (set(np.argsort(-x, kind="stable")[:count]) for x in (values, last))
    return len(first & end) / count
