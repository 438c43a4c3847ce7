"""Wiring: the only room that hangs anything on a live model; a tap reads, a valve scales."""

from typing import TYPE_CHECKING

from headcount.doors import open_door

if TYPE_CHECKING:
    from headcount.wiring.ablation import (
        Ablation,
        Instead,
        ablated,
        check_uniform,
        chosen_heads,
        donors_of,
        means_of,
        replaced,
        uniform,
        zero,
    )
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
    )
    from headcount.wiring.taps import Watch, tap
    from headcount.wiring.valves import Valve, backflow, valve

open_door(__name__)
