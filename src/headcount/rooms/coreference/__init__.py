"""Coreference: heads that look from a mention to what it refers to."""

from typing import TYPE_CHECKING

from headcount.doors import open_door

if TYPE_CHECKING:
    from headcount.rooms.coreference.files import PASSAGE, cut_passage
    from headcount.rooms.coreference.tally import CoreferenceTally, PronounChoice, coreferent

open_door(__name__)
