"""Serve: a local page to type sentences in."""

from typing import TYPE_CHECKING

from headcount.doors import open_door

if TYPE_CHECKING:
    from headcount.rooms.serve.inspector import inspector_of
    from headcount.rooms.serve.server import app_of, new_token

#: What it adds; see `headcount.plugins`.
ADDS = {
    "commands": {"serve": "command:serve_command"},
}

open_door(__name__)
