"""Spoken: which cross heads of a Whisper tell when a word began."""

from typing import TYPE_CHECKING

from headcount.doors import open_door

if TYPE_CHECKING:
    from headcount.rooms.spoken.timing import Clip, WordTimes, word_times

#: What it adds; see `headcount.plugins`.
ADDS = {
    "names": {
        "Clip": "timing:Clip",
        "WordTimes": "timing:WordTimes",
        "word_times": "timing:word_times",
    }
}

open_door(__name__)
