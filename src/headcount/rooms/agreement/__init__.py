"""Agreement: do measures rank heads alike, and do heads with a role matter more, or survive?"""

from typing import TYPE_CHECKING

from headcount.doors import open_door

if TYPE_CHECKING:
    from headcount.rooms.agreement.agreement import by_role, role_sentences
    from headcount.rooms.agreement.survival import (
        FUNCTIONS,
        left_by_layer,
        left_by_stack,
        survivors,
    )

#: What it adds; see `headcount.plugins`.
ADDS = {
    "stages": {"agreement": "agreement:AGREEMENT", "function": "agreement:FUNCTION"},
    "views": {"agreement": "agreement:agreement_part", "function": "agreement:function_part"},
    "parts": {"agreement": "agreement"},
}

open_door(__name__)
