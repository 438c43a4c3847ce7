"""Roles: a head's numbers read as a verdict with its evidence; no model is run here.

Rooms and other packages add roles (`headcount.plugins`); each is had from here by its class.

>>> from headcount.surveys import roles
>>> roles.Positional(share=0.8).share
0.8
>>> roles.Syntactic().margin
0.1
"""

from typing import TYPE_CHECKING, Any

from headcount.doors import open_door

if TYPE_CHECKING:
    from headcount.surveys.roles.positional import Positional
    from headcount.surveys.roles.role import (
        HEAD_KEY,
        KINDS,
        MEASURES,
        TRIALS,
        Kind,
        Role,
        RolesText,
        Verdict,
        all_roles,
        best_of,
        confirmed,
        counted,
        first_of,
        head_of,
        judged,
        kind_beside,
        reported,
        row_verdicts,
        says_of,
        unread,
        value_text,
        verdict_frame,
        verdicts_of,
    )

    def __getattr__(name: str) -> Any:
        """The class of a role that a room adds."""


#: What users see; the other names are for packages.
__all__ = [
    "KINDS",
    "Kind",
    "Positional",
    "Role",
    "TrialRole",
    "Verdict",
    "all_roles",
    "best_heads",
    "best_of",
    "judged",
    "verdict_frame",
    "verdicts_of",
]

open_door(__name__, "roles")
