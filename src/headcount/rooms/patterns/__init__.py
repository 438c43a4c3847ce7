"""Patterns: what a head's map looks like as a picture, by a small network."""

from typing import TYPE_CHECKING

from headcount.doors import open_door

if TYPE_CHECKING:
    from headcount.rooms.patterns.network import PATTERN, PATTERN_COLUMNS
    from headcount.rooms.patterns.tally import Judge, Patterns, layer_shares, with_pattern

#: What it adds; see `headcount.plugins`.
ADDS = {
    "stages": {"patterns": "stage:STAGE"},
    "tallies": {"patterns": "tally:PLAN"},
    "parts": {"patterns by layer": "tally:layer_shares"},
}

open_door(__name__)
