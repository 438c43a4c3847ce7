"""Bench: how fast a model runs before and after heads are removed."""

from typing import TYPE_CHECKING

from headcount.doors import open_door

if TYPE_CHECKING:
    from headcount.rooms.bench.speed import check_timing, even_heads, latency

#: What it adds; see `headcount.plugins`.
ADDS = {
    "commands": {"bench": "command:bench_command"},
}

open_door(__name__)
