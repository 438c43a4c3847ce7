"""Resting: heads that look at separators, the first token or the end of the source."""

#: What it adds; see `headcount.plugins`.
ADDS = {
    "roles": {
        "separator": "separator:Separator",
        "sink": "sink:Sink",
        "source-end": "sink:SourceEnd",
    },
    "tallies": {"separator-rows": "separator:ROWS"},
    "trials": {"no-op": "noop:PLAN"},
    "names": {"norms": "norms:norms"},
}
