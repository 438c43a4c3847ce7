"""Bench: how fast a model runs before and after heads are removed."""

from typing import TYPE_CHECKING

from headcount.doors import open_door

if TYPE_CHECKING:
    from headcount.rooms.bench.speed import check_timing, even_heads, latency

open_door(__name__)
