"""Atlas: one page over many runs."""

from typing import TYPE_CHECKING

from headcount.doors import open_door

if TYPE_CHECKING:
    from headcount.rooms.atlas.atlas import AtlasModel, AtlasPlan, run_atlas

#: What it adds; see `headcount.plugins`.
ADDS = {
    "commands": {"atlas": "command:atlas_command"},
}

open_door(__name__)
