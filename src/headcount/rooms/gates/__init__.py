"""Gates: learned gates on heads, and training after heads are removed."""

from typing import TYPE_CHECKING

from headcount.doors import open_door

if TYPE_CHECKING:
    from headcount.rooms.gates.learning import learn_gates
    from headcount.rooms.gates.page import freed_sentences, known_heads, sets_of_frame

#: What it adds; see `headcount.plugins`.
ADDS = {
    "names": {
        "heal": "learning:heal",
        "learn_gates": "learning:learn_gates",
        "add_gates": "trainer:add_gates",
    },
    "stages": {"gates": "freeing:GATES", "refitted": "freeing:REFIT", "healed": "freeing:HEAL"},
    "parts": {"training": "freeing", "freed": "page:freed_sentences"},
}

open_door(__name__)
