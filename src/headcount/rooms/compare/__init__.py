"""Two models, or two runs, compared head by head."""

from typing import TYPE_CHECKING

from headcount.doors import open_door

if TYPE_CHECKING:
    from headcount.rooms.compare.comparing import compare
    from headcount.rooms.compare.runs import (
        Changes,
        compare_runs,
    )

#: What it adds; see `headcount.plugins`.
ADDS = {
    "commands": {"compare": "command:compare_command"},
    "names": {"compare": "comparing:compare"},
}

open_door(__name__)
