"""Roles: a head's numbers read as a verdict with its evidence; no model is run here.

>>> from headcount import roles
>>> roles.Positional(share=0.8).share
0.8
"""

from headcount.roles.alignment import Alignment
from headcount.roles.arguments import Arguments
from headcount.roles.catalogue import all_roles, judged
from headcount.roles.coreference import Coreference
from headcount.roles.duplicate import Duplicate
from headcount.roles.features import Features
from headcount.roles.induction import Induction
from headcount.roles.kinds import KINDS
from headcount.roles.positional import Positional
from headcount.roles.previous import Previous
from headcount.roles.rare import Rare
from headcount.roles.retrieval import Retrieval
from headcount.roles.role import Role, Verdict, best_of
from headcount.roles.separator import Separator
from headcount.roles.sink import Sink
from headcount.roles.source_end import SourceEnd
from headcount.roles.syntactic import Syntactic
from headcount.roles.verdicts import verdict_frame, verdicts_of

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
    "best_of",
    "judged",
    "verdict_frame",
    "verdicts_of",
]
