"""The tables of the page, as Markdown, each from the surveys alone."""

from __future__ import annotations

from collections.abc import Callable

from .markdown import Surveys
from .meaning import coreference, decoder, features, first_row, gap
from .overview import sizes, verdict_table
from .places import positional, rare, rest, separator
from .relations import clark, languages, minilm, universal
from .translators import recurring, relations_that_recur, voita

__all__ = ["TABLES"]

#: Name of a place on the page to what fills it.
TABLES: dict[str, Callable[[Surveys], str]] = {
    "verdicts": verdict_table,
    "clark": clark,
    "universal": universal,
    "minilm": minilm,
    "languages": languages,
    "voita": voita,
    "recurring": recurring,
    "relations": relations_that_recur,
    "positional": positional,
    "rare": rare,
    "separator": separator,
    "rest": rest,
    "coreference": coreference,
    "gap": gap,
    "features": features,
    "first_row": first_row,
    "decoder": decoder,
    "sizes": sizes,
}
