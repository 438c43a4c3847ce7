"""Sweeps: one task evaluated with many sets of heads ablated, fast, journaled, tested.

>>> from headcount.heads import Head
>>> from headcount.sweeps import Intervention
>>> Intervention([Head("enc", 0, 3)], "uniform").name
'enc.0.3 uniform'
"""

from headcount.sweeps.interrupted import SweepInterrupted
from headcount.sweeps.intervention import (
    MODES,
    Intervention,
    Mode,
    others,
    sets,
    single_heads,
    whole_layers,
)
from headcount.sweeps.result import Sweep
from headcount.sweeps.sweep import sweep

__all__ = [
    "MODES",
    "Intervention",
    "Mode",
    "Sweep",
    "SweepInterrupted",
    "others",
    "sets",
    "single_heads",
    "sweep",
    "whole_layers",
]
