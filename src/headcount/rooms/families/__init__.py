"""Families: heads whose attention is alike."""

from typing import TYPE_CHECKING

from headcount.doors import open_door

if TYPE_CHECKING:
    from headcount.rooms.families.divergence import SMOOTHING, Divergence
    from headcount.rooms.families.grouping import families, families_of_tally
    from headcount.rooms.families.stage import families_json, print_families

#: What it adds; see `headcount.plugins`.
ADDS = {
    "names": {"families": "grouping:families"},
    "views": {"map": "stage:pair_part"},
    "stages": {"families": "stage:STAGE"},
    "parts": {"families": "."},
    "tallies": {"families": "divergence:PLAN"},
}

open_door(__name__)
