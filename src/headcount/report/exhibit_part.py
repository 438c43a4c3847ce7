"""Exhibits: the texts for the page's data, and the packed maps that lie beside it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headcount.exhibits import Exhibit, Text
from headcount.report.packing import Fineness, pack
from headcount.report.source import Source

__all__ = ["exhibit_part", "map_blocks"]


def exhibit_part(source: Source) -> list[dict[str, Any]]:
    """Titles, tokens, words, and per stack which text asks and which answers."""
    return [
        {
            "id": one.id,
            "title": one.title,
            "own": one.own_text,
            "texts": {name: _text(text) for name, text in one.texts.items()},
            "sides": {stack: list(sides) for stack, sides in one.sides.items()},
        }
        for one in source.exhibits
    ]


def map_blocks(source: Source, fineness: Fineness) -> Iterator[tuple[str, str]]:
    """Element id and packed maps, one block an exhibit, stack and layer; ids come from indices."""
    if fineness == "none":
        return
    width = {stack: heads for stack, _, heads in source.shape}
    for number, exhibit in enumerate(source.exhibits):
        for stack, layer in sorted(exhibit.maps):
            if stack in width:
                yield (
                    f"map-{number}-{stack}-{layer}",
                    pack(_full(exhibit, stack, layer, source, width[stack]), fineness),
                )


def _full(
    exhibit: Exhibit, stack: str, layer: int, source: Source, width: int
) -> NDArray[np.float32]:
    """A layer's maps at the places of its heads; those of heads that went are empty."""
    maps = exhibit.maps[stack, layer]
    if len(maps) == width:
        return maps
    own = [head.index for head in source.table.heads if head[:2] == (stack, layer)]
    full = np.zeros((width, *maps.shape[1:]), dtype="float32")
    for index, one in zip(own, maps, strict=False):
        full[index] = one
    return full


def _text(text: Text) -> dict[str, Any]:
    kept: dict[str, Any] = {
        "tokens": list(text.tokens),
        "special": [place for place, special in enumerate(text.special) if special],
    }
    if text.words is not None and len(set(text.words)) > 1:
        kept["words"] = list(text.words)
        kept["word_texts"] = list(text.word_texts)
    return kept
