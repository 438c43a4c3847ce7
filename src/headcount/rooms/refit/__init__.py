"""Refit: the remaining heads of a layer replace the removed ones."""

from typing import TYPE_CHECKING

from headcount.doors import open_door

if TYPE_CHECKING:
    from headcount.rooms.refit.refitting import Refit

#: What it adds; see `headcount.plugins`.
ADDS = {"names": {"Refit": "refitting:Refit"}}

open_door(__name__)
