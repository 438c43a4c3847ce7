"""Roles: a head's numbers read as a verdict with its evidence; no model is run here.

>>> from headcount.survey import roles
>>> roles.Positional(share=0.8).share
0.8
"""

from typing import TYPE_CHECKING

from headcount.doors import open_door

if TYPE_CHECKING:
    from headcount.surveys.roles.best import best_heads
    from headcount.surveys.roles.catalogue import all_roles, judged, unread
    from headcount.surveys.roles.linguistic import (
        Alignment,
        Arguments,
        Coreference,
        Features,
        Rare,
        Syntactic,
    )
    from headcount.surveys.roles.recall import Duplicate, Induction, Retrieval
    from headcount.surveys.roles.resting import Positional, Previous, Separator, Sink, SourceEnd
    from headcount.surveys.roles.role import (
        KINDS,
        Role,
        RolesText,
        Verdict,
        best_of,
        counted,
        verdict_frame,
        verdicts_of,
    )

#: What users see; the other names are for headcount's own packages.
__all__ = [
    "KINDS",
    "Alignment",
    "Arguments",
    "Coreference",
    "Duplicate",
    "Features",
    "Induction",
    "Positional",
    "Previous",
    "Rare",
    "Retrieval",
    "Role",
    "Separator",
    "Sink",
    "SourceEnd",
    "Syntactic",
    "Verdict",
    "all_roles",
    "best_heads",
    "best_of",
    "judged",
    "verdict_frame",
    "verdicts_of",
]

open_door(__name__)
