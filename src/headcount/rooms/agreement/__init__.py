"""Agreement: do measures rank heads alike, and do heads with a role matter more, or survive?"""

from typing import TYPE_CHECKING

from headcount.doors import open_door

if TYPE_CHECKING:
    from headcount.rooms.agreement.ranks import Kind, correlate_weighted, rank_agreement

#: What it adds; see `headcount.plugins`.
ADDS = {
    "stages": {"agreement": "agreement:AGREEMENT", "function": "agreement:FUNCTION"},
    "views": {"agreement": "agreement:agreement_part", "function": "agreement:function_part"},
    "parts": {"agreement": "agreement"},
}

open_door(__name__)
