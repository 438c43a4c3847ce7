"""Wiring: the only room that hangs anything on a live model; a tap reads, a valve scales."""

from typing import TYPE_CHECKING

from headcount.doors import open_door

if TYPE_CHECKING:
    from headcount.wiring.rows import PATHS, Scores, halve_tiles
    from headcount.wiring.seam import Attended, Turns, attached, hooked, listening, shown
    from headcount.wiring.sighting import (
        TILE,
        Asked,
        Needs,
        Sighting,
        check_ids,
        known_ids,
        of_class,
        tiles_of,
        uniform_entropy,
        unmasked,
    )
    from headcount.wiring.taps import Watch, tap
    from headcount.wiring.valves import (
        Ablation,
        Instead,
        Valve,
        ablated,
        backflow,
        chosen_heads,
        replaced,
        valve,
        zero,
    )

open_door(__name__)
