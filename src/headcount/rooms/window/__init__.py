"""Heads that need only a window: kept to the first tokens and the last ones, not removed."""

from typing import TYPE_CHECKING

from headcount.doors import open_door

if TYPE_CHECKING:
    from headcount.rooms.window.planning import SHOWN, UNSEEN, Recall, WindowPlan, save_windowed
    from headcount.rooms.window.restricting import (
        Window,
        read_window,
        restrictable,
        restricted,
        restriction,
    )

#: What it adds; see `headcount.plugins`.
ADDS = {
    "scores": {"restriction": "restricting:RestrictionScore"},
    "tasks": {
        "needle": "planning:needle",
        "lookup": "planning:lookup",
        "repeated": "planning:repeated",
    },
    "parts": {"restrict": "planning:restrict_command"},
    "names": {"restrict_plan": "planning:restrict_plan", "restricted": "restricting:restricted"},
}

open_door(__name__)
