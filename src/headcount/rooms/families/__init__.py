"""Families: heads whose attention is alike."""

from typing import TYPE_CHECKING

from headcount.doors import open_door

if TYPE_CHECKING:
    from headcount.rooms.families.divergence import SMOOTHING, Divergence
    from headcount.rooms.families.grouping import (
        draw_nearest,
        families,
        families_of_tally,
        family_sentences,
    )
    from headcount.rooms.families.similarity import Families

#: What it adds; see `headcount.plugins`.
ADDS = {
    "names": {"families": "grouping:families"},
    "stages": {"families": "stage:STAGE"},
    "parts": {"families": "."},
    "tallies": {"families": "divergence:PLAN"},
}

open_door(__name__)
