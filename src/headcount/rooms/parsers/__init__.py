"""Parsers: plain text becomes trees."""

from typing import TYPE_CHECKING

from headcount.doors import open_door

if TYPE_CHECKING:
    from headcount.rooms.parsers.parsers import load_parser, parsed, parser_name, plain_sentence

#: What it adds; see `headcount.plugins`.
ADDS = {"parts": {"parsers": "."}}

open_door(__name__)
