"""Patterns: what a head's map looks like as a picture, by a small network."""

#: What it adds; see `headcount.plugins`.
ADDS = {
    "stages": {"patterns": "tally:STAGE"},
    "tallies": {"patterns": "tally:PLAN", "offset-mass": "tally:OFFSET_MASS_PLAN"},
    "parts": {"patterns by layer": "tally:layer_shares"},
}
