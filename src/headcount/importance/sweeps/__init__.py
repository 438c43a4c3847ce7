"""Sweeps: one task evaluated with many sets of heads ablated, fast, journaled, tested.

>>> from headcount.records.heads import Head
>>> from headcount.importance.sweeps.interventions import Intervention
>>> Intervention([Head("enc", 0, 3)], "uniform").name
'enc.0.3 uniform'
"""

from typing import TYPE_CHECKING

from headcount.doors import open_door

if TYPE_CHECKING:
    from headcount.importance.sweeps.interventions import (
        MODES,
        Intervention,
        Mode,
        others,
        sets,
        single_heads,
        whole_layers,
    )
    from headcount.importance.sweeps.sweeping import Sweep, SweepInterrupted, sweep

open_door(__name__)
