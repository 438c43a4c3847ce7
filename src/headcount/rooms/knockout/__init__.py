"""Whole jobs taken away: all heads of a role off together, against as many other heads."""

from typing import TYPE_CHECKING

from headcount.doors import open_door

if TYPE_CHECKING:
    from headcount.rooms.knockout.whole_jobs import knockout, knockout_sentences, role_sets

#: What it adds; see `headcount.plugins`.
ADDS = {
    "names": {"knockout": "whole_jobs:knockout"},
    "parts": {"knockout": "command:knock_out"},
    "stages": {"knockout": "stage:STAGE"},
}

open_door(__name__)
