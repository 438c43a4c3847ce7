"""Trials: inputs made to ask heads one question, and the roles that read them."""

from typing import TYPE_CHECKING

from headcount.doors import open_door

if TYPE_CHECKING:
    from headcount.rooms.trials.alignment import Aligner, linked
    from headcount.rooms.trials.inputs import (
        Stream,
        predicts_tokens,
        stream_of,
        token_logits,
        wrapping_of,
    )
    from headcount.rooms.trials.recall import TrialRole, passing_rows, plain_words

#: What it adds; see `headcount.plugins`.
ADDS = {
    "roles": {
        "alignment": "recall:Alignment",
        "induction": "recall:Induction",
        "retrieval": "recall:Retrieval",
        "duplicate": "recall:Duplicate",
        "previous": "recall:Previous",
    },
    "names": {"roles.TrialRole": "recall:TrialRole"},
    "trials": {
        "repeats": "repeats:REPEATS",
        "copying": "repeats:COPYING",
        "sink": "alignment:SINKS_PLAN",
        "needle": "needle:NEEDLE",
        "pairs": "alignment:PAIRS_PLAN",
    },
}

open_door(__name__)
