"""Word by head: how much less likely each output word becomes without each head."""

from typing import TYPE_CHECKING

from headcount.doors import open_door

if TYPE_CHECKING:
    from headcount.rooms.lesions.by_word import word_losses
    from headcount.rooms.lesions.word_by_head import Lesions

#: What it adds; see `headcount.plugins`.
ADDS = {
    "commands": {"lesions": "command:lesions_command"},
    "stages": {"lesions": "word_by_head:STAGE", "causes": "causation:STAGE"},
    "views": {"lesions": "word_by_head:lesion_part", "causes": "causation:cause_part"},
    "names": {"lesions": "word_by_head:lesions", "causes": "causation:causes"},
}

open_door(__name__)
