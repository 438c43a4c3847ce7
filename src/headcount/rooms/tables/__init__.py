"""Tables for papers, and all that a run knows of one head."""

from typing import TYPE_CHECKING

from headcount.doors import open_door

if TYPE_CHECKING:
    from headcount.rooms.tables.tables import check_frame_table, explain, frame_table, paper_table

#: What it adds; see `headcount.plugins`.
ADDS = {
    "names": {"explain": "tables:explain", "paper_table": "tables:paper_table"},
    "parts": {"tables": "."},
}

open_door(__name__)
