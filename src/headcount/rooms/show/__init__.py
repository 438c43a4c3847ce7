"""Show: a head's attention in the terminal or a notebook."""

from typing import TYPE_CHECKING

from headcount.doors import open_door

if TYPE_CHECKING:
    from headcount.rooms.show.notebook import template

#: What it adds; see `headcount.plugins`.
ADDS = {
    "commands": {"show": "command:show_command", "explain": "command:explain_command"},
    "names": {"show": "showing:show"},
    "parts": {"notebook": "notebook:brief_html"},
}

open_door(__name__)
