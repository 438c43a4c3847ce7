"""Features: heads that look at words with the same grammatical features."""

from typing import TYPE_CHECKING

from headcount.doors import open_door

if TYPE_CHECKING:
    from headcount.rooms.features.tally import FeatureTally

#: What it adds; see `headcount.plugins`.
ADDS = {"roles": {"feature": "feature:Features"}, "tallies": {"features": "tally:PLAN"}}

open_door(__name__)
