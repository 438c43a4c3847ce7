"""Resting: heads that look at separators, the first token or the end of the source."""

from typing import TYPE_CHECKING

from headcount.doors import open_door

if TYPE_CHECKING:
    from headcount.rooms.resting.sink import SINK_AFTER, SINKS

#: What it adds; see `headcount.plugins`.
ADDS = {
    "roles": {
        "separator": "separator:Separator",
        "sink": "sink:Sink",
        "source-end": "source_end:SourceEnd",
    },
    "trials": {"no-op": "noop:PLAN"},
}

open_door(__name__)
