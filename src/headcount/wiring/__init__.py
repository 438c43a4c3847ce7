"""Wiring: the only room that hangs anything on a live model; a tap reads, a valve scales."""

from headcount.wiring.sighting import Needs, Sighting
from headcount.wiring.taps import Watch, tap
from headcount.wiring.valves import Valve, valve

__all__ = ["Needs", "Sighting", "Valve", "Watch", "tap", "valve"]
