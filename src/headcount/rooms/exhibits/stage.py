"""Exhibits among the stages of a story."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headcount.reports import Fineness, Source, StageMaker, StoryContext, StoryStage, deflated
from headcount.rooms.exhibits.choosing import exhibits_of
from headcount.rooms.exhibits.exhibits import Exhibit, Text, token_texts, write_exhibits

#: As many sentences are kept.
COUNT = 3


def exhibit_stage(context: StoryContext) -> StoryStage:
    """Sentences that show what the verdicts are about, with every head's map of them."""

    def work() -> list[str]:
        roles = context.run.read_frame("roles") if "roles" in context.run.frames else None
        found, notes = exhibits_of(
            context.subject,
            context.treebank or context.texts,
            roles=roles,
            count=COUNT,
            own_text=context.own_text,
            coref=context.coref,
        )
        write_exhibits(context.run, found)
        return notes

    settings = {**context.about_texts, "count": COUNT, "own_text": context.own_text}
    return StoryStage("exhibits", "A few sentences to look at", settings, work, keeps_text=True)


STAGE = StageMaker(exhibit_stage, after="survey")


# --- On the page ----------------------------------------------------------------------------------


def exhibit_part(source: Source) -> list[dict[str, Any]]:
    """Titles, tokens, words, and per stack the texts of queries and keys."""
    if source.maps == "none":
        return []
    parts = [one.described(_text) for one in source.exhibits]
    return [part | {"own": part.pop("own_text")} for part in parts]


def map_blocks(source: Source) -> Iterator[tuple[str, str]]:
    """Element id and packed maps, one block an exhibit, stack and layer; ids come from indices."""
    if source.maps == "none":
        return
    width = {stack: heads for stack, _, heads in source.shape}
    for number, exhibit in enumerate(source.exhibits):
        for stack, layer in sorted(exhibit.maps):
            if stack in width:
                yield (
                    f"map-{number}-{stack}-{layer}",
                    pack_map(_full(exhibit, stack, layer, source, width[stack]), source.maps),
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
        "tokens": token_texts(text.tokens),
        "special": [place for place, special in enumerate(text.special) if special],
    }
    if text.words is not None and len(set(text.words)) > 1:
        kept["words"] = list(text.words)
        kept["word_texts"] = list(text.word_texts)
    return kept


def pack_map(maps: NDArray[np.float32], fineness: Fineness = "fine") -> str:
    """The map ``[head, query, key]`` of one layer as ASCII: u16 maxima, then u8 weights.

    ``coarse`` takes 1 as every row's maximum, which loses small weights and packs smaller.
    """
    exact = np.clip(np.nan_to_num(np.asarray(maps, dtype="float64")), 0, 1)
    top = exact.max(axis=-1) if fineness == "fine" else np.ones(exact.shape[:-1])
    tops = np.ceil(top * 65535).astype("<u2")
    scale = np.maximum(tops / 65535, 1e-9)[..., None]
    weights = np.rint(255 * exact / scale).astype("u1")
    return deflated(tops.tobytes() + weights.tobytes())
