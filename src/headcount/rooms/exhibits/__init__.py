"""Exhibits: a few sentences that show what the verdicts are about, with every head's map."""

from typing import TYPE_CHECKING

from headcount.doors import open_door

if TYPE_CHECKING:
    from headcount.rooms.exhibits.choosing import encode_one, look_at
    from headcount.rooms.exhibits.exhibits import (
        Exhibit,
        Text,
        read_exhibits,
        token_texts,
        visible_token,
        write_exhibits,
    )
    from headcount.rooms.exhibits.stage import map_blocks

#: What it adds; see `headcount.plugins`.
ADDS = {
    "stages": {"exhibits": "stage:STAGE"},
    "views": {"exhibits": "stage:exhibit_part"},
    "parts": {"exhibits": "."},
}

open_door(__name__)
