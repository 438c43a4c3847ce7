"""Relations: heads that follow the arcs of trees, and what they link."""

from typing import TYPE_CHECKING

from headcount.doors import open_door

if TYPE_CHECKING:
    from headcount.rooms.relations.links import Links
    from headcount.rooms.relations.relations import (
        OFFSETS,
        ROOT,
        Arcs,
        BatchArcs,
        Relations,
        arcs_of,
    )
    from headcount.rooms.relations.syntactic import Syntactic

#: What it adds; see `headcount.plugins`.
ADDS = {
    "views": {"relations": "page:relation_part"},
    "parts": {"missed relations": "page:missed", "best heads": "page"},
    "roles": {"syntactic": "syntactic:Syntactic"},
    "names": {"roles.best_heads": "best:best_heads", "roles.not_shown": "best:not_shown"},
    "tallies": {
        "relations": "relations:PLAN",
        "links": "links:LINKS_PLAN",
        "rest by relation": "rest_by_relation:PLAN",
        "arguments": "links:ARGUMENTS_PLAN",
    },
}

open_door(__name__)
