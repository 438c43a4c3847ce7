"""Coreference: heads that look from a mention to what it refers to."""

from typing import TYPE_CHECKING

from headcount.doors import open_door

if TYPE_CHECKING:
    from headcount.rooms.coreference.files import cut_passage
    from headcount.rooms.coreference.tally import coreferent

#: What it adds; see `headcount.plugins`.
ADDS = {
    "formats": {"coref": "files:COREF", "gap": "files:GAP"},
    "parts": {"passages": "files:treebank_passages"},
    "roles": {"coreference": "coreferent_heads:Coreference"},
    "tallies": {"coreference": "tally:COREFERENCE_PLAN", "pronouns": "tally:PRONOUNS_PLAN"},
}

open_door(__name__)
