"""Twins: models with the same architecture and random weights, to compare with chance."""

from typing import TYPE_CHECKING

from headcount.doors import open_door

if TYPE_CHECKING:
    from headcount.rooms.twins.twin import random_twin

#: What it adds; see `headcount.plugins`.
ADDS = {"parts": {"control": "twin"}}

open_door(__name__)
