"""Relevance: layer-wise relevance propagation: rules, the trace of a forward, and its way back."""

from typing import TYPE_CHECKING

from headcount.doors import open_door

if TYPE_CHECKING:
    from headcount.rooms.relevance.score import relevance

#: What it adds; see `headcount.plugins`.
ADDS = {"scores": {"relevance": "score:RelevanceScore"}, "stages": {"relevance": "stage:STAGE"}}

open_door(__name__)
