"""Arguments: predicates and their arguments, read from files."""

#: What it adds; see `headcount.plugins`.
ADDS = {
    "formats": {"predicates": "predicates:PREDICATES"},
    "roles": {"argument": "argument:Arguments"},
}
