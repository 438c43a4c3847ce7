"""The roles that a survey judges, and the judging: every rule reads the table in turn."""

from __future__ import annotations

import math
from collections.abc import Sequence

from headcount.roles.alignment import Alignment
from headcount.roles.arguments import Arguments
from headcount.roles.coreference import Coreference
from headcount.roles.duplicate import Duplicate
from headcount.roles.features import Features
from headcount.roles.induction import Induction
from headcount.roles.kinds import KINDS
from headcount.roles.positional import Positional
from headcount.roles.previous import Previous
from headcount.roles.rare import Rare
from headcount.roles.retrieval import Retrieval
from headcount.roles.role import Role, Verdict
from headcount.roles.separator import Separator
from headcount.roles.sink import Sink
from headcount.roles.source_end import SourceEnd
from headcount.roles.syntactic import Syntactic
from headcount.table import HeadTable

__all__ = ["all_roles", "judged", "unread"]


def all_roles() -> list[Role]:
    """Every role with the thresholds of its paper, in the order of `KINDS`."""
    return [
        Positional(),
        Syntactic(),
        Rare(),
        Coreference(),
        Arguments(),
        Features(),
        Separator(),
        Sink(),
        Previous(),
        Duplicate(),
        Induction(),
        Retrieval(),
        Alignment(),
        SourceEnd(),
    ]


def judged(
    table: HeadTable, roles: Sequence[Role], twins: Sequence[HeadTable] = ()
) -> list[Verdict]:
    """The verdicts of all roles whose figures are there, each beside its random twins' mean."""
    found = [
        verdict.beside(_chance(role, verdict, twins)) if twins else verdict
        for role in roles
        if not unread(role, table)
        for verdict in role.judge(table)
    ]
    return sorted(found, key=lambda verdict: [*KINDS].index(verdict.role))


def unread(role: Role, table: HeadTable) -> list[str]:
    """The columns and details that a role needs and the table does not have."""
    known = [name for name in table.names if table.frame[name].notna().any()]
    return [name for name in role.reads if name not in known and name not in table.details]


def _chance(role: Role, verdict: Verdict, twins: Sequence[HeadTable]) -> float:
    found = [role.chance(twin, verdict) for twin in twins if not unread(role, twin)]
    return math.fsum(found) / len(found) if found else math.nan
