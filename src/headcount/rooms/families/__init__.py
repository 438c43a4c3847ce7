"""Families: heads whose attention is alike."""

from typing import TYPE_CHECKING

from headcount.doors import open_door

if TYPE_CHECKING:
    from headcount.rooms.families.divergence import SMOOTHING, Divergence
    from headcount.rooms.families.grouping import (
        families,
        families_json,
        families_of_tally,
        print_families,
    )

#: What it adds; see `headcount.plugins`.
ADDS = {
    "names": {"families": "grouping:families"},
    "views": {"map": "grouping:pair_part"},
    "stages": {"families": "grouping:STAGE"},
    "parts": {"families": "."},
    "tallies": {"families": "divergence:PLAN"},
}

open_door(__name__)
