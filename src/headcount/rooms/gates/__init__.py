"""Gates: learned gates on heads, and training after heads are removed."""

from typing import TYPE_CHECKING

from headcount.doors import open_door

if TYPE_CHECKING:
    from headcount.rooms.gates.learning import TrainingOptions, heal, learn_gates

open_door(__name__)
