"""The roles that a survey judges, and the judging: every rule reads the table in turn."""

from __future__ import annotations

import math
from collections.abc import Sequence

from headcount import plugins
from headcount.records import HeadTable
from headcount.surveys.roles.role import KINDS, Role, Verdict


def all_roles() -> list[Role]:
    """Every role with the thresholds of its paper, in the order of `KINDS`."""
    made: list[Role] = [role() for role in plugins.every("roles").values()]
    return sorted(made, key=lambda role: [*KINDS].index(role.name))


def judged(
    table: HeadTable, roles: Sequence[Role], twins: Sequence[HeadTable] = ()
) -> list[Verdict]:
    """The verdicts of all roles whose figures are there.

    Where random twins were measured they decide: what the best head of a model that has learned
    nothing reaches is no role. The lower end of a verdict's interval must lie above their mean.
    """
    for role in roles:
        KINDS.know(role)
    found = [
        verdict.beside(_chance(role, verdict, twins)) if twins else verdict
        for role in roles
        if not unread(role, table)
        for verdict in role.judge(table)
    ]
    held = [verdict for verdict in found if verdict.beats_twin]
    return sorted(held, key=lambda verdict: [*KINDS].index(verdict.role))


def unread(role: Role, table: HeadTable) -> list[str]:
    """The columns and details that a role needs and the table does not have."""
    known = [name for name in table.names if table.frame[name].notna().any()]
    return [name for name in role.reads if name not in known and name not in table.details]


def _chance(role: Role, verdict: Verdict, twins: Sequence[HeadTable]) -> float:
    found = [role.chance(twin, verdict) for twin in twins if not unread(role, twin)]
    return math.fsum(found) / len(found) if found else math.nan
