"""Arguments: predicates and their arguments, read from files."""

from typing import TYPE_CHECKING

from headcount.doors import open_door

if TYPE_CHECKING:
    from headcount.rooms.arguments.predicates import PREDICATE_KEYS, read_predicates

#: What it adds; see `headcount.plugins`.
ADDS = {
    "formats": {"predicates": "predicates:PREDICATES"},
    "roles": {"argument": "argument:Arguments"},
}

open_door(__name__)
