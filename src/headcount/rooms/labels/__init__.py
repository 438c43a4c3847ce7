"""Labels: texts with a class or a number, and GLUE's sets of them."""

from typing import TYPE_CHECKING

from headcount.doors import open_door

if TYPE_CHECKING:
    from headcount.rooms.labels.hidden import MaskedLanguageModelling, mlm
    from headcount.rooms.labels.labelled import HeadTask, Regression, Similarity, embed

#: What it adds; see `headcount.plugins`.
ADDS = {
    "tasks": {
        "classification": "labelled:classification",
        "regression": "labelled:regression",
        "similarity": "labelled:similarity",
        "glue": "labelled:glue",
        "mlm": "hidden:mlm",
    }
}

open_door(__name__)
