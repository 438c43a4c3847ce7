"""The control: the same programme on random twins, put beside what was measured.

A twin's best head of a stack answers for chance: it was chosen with the benefit of hindsight, so
a head that only does as well has learnt nothing that can be told apart.
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from headcount.errors import UsageError
from headcount.models.twin import random_twin
from headcount.stages.programme import Programme, Telling
from headcount.subject import Subject
from headcount.table import HeadTable

__all__ = ["CONTROLS", "beside", "check_control", "twin_tables"]

#: Kind of control to whether embeddings stay as trained (Clark et al. 2019, section 5).
CONTROLS = {"random-init": False, "random-but-embeddings": True}


def check_control(control: str | None, seeds: Sequence[int]) -> None:
    """Refuse a control that is none, or none of its seeds."""
    if control is not None and control not in CONTROLS:
        raise UsageError(f"There is no control '{control}'; choose {' or '.join(CONTROLS)}.")
    if not seeds:
        raise UsageError("The control has no seed; give at least one, e.g. 0.")


def twin_tables(
    subject: Subject,
    programme: Programme,
    control: str,
    seeds: Sequence[int],
    telling: Telling | None = None,
) -> list[HeadTable]:
    """The programme's table for a twin of each seed; one twin lives at a time."""
    tables = []
    for seed in seeds:
        twin = random_twin(subject, seed=seed, keep_embeddings=CONTROLS[control])
        of = " the random twin" if len(seeds) == 1 else f" random twin {seed}"
        tables.append(programme.again().run(twin, telling, of))
    return tables


def beside(table: HeadTable, twins: Sequence[HeadTable]) -> None:
    """Put the twins' figures into the table's details, and a `control` into its relations."""
    if not twins:
        return
    table.details["control"] = pd.concat(
        [_summary(twin, number) for number, twin in enumerate(twins)], ignore_index=True
    )
    if "relations" in table.details:
        table.details["relations"] = _with_control(
            table.details["relations"], [twin.details["relations"] for twin in twins]
        )


def _summary(twin: HeadTable, number: int) -> pd.DataFrame:
    """For each column and stack of a twin: its mean, lowest and highest head."""
    long = twin.frame.melt(ignore_index=False, var_name="column").reset_index()
    found = long.groupby(["column", "stack"], observed=True, sort=False)["value"]
    return found.agg(["mean", "min", "max"]).reset_index().assign(twin=number)


def _with_control(relations: pd.DataFrame, twins: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """`control`: the accuracy of the twin's best head of the stack, averaged over twins.

    Chosen on one half and told on both, as ours; over all sentences, the best with hindsight.
    """
    key = ["stack", "relation", "direction", "split"]
    best = [
        twin[twin["selected"].astype(bool) | (twin["split"] == "all")]
        .groupby(key)["accuracy"]
        .max()
        for twin in twins
    ]
    return relations.join(pd.concat(best, axis=1).mean(axis=1).rename("control"), on=key)
