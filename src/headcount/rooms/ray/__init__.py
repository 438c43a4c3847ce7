"""Ray: work on a cluster, or on all cores of a machine."""

from typing import TYPE_CHECKING

from headcount.doors import open_door

if TYPE_CHECKING:
    from headcount.rooms.ray.engine import RayEngine

#: What it adds; see `headcount.plugins`.
ADDS = {
    "names": {"RayEngine": "engine:RayEngine"},
    "engines": {"ray": "engine:RayEngine"},
}

open_door(__name__)
