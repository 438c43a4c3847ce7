"""Attention maps of real models, one at a time, cropped to their tokens."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import headcount as hc
from headcount.records.heads import Head
from headcount.text import encode, intake_of
from headcount.wiring import Needs, Sighting, tap

from .texts import Given


class Map(NamedTuple):
    """One head on one text: weights `[query, key]`, and what stands at each place."""

    head: Head
    weights: NDArray[np.float32]
    special: NDArray[np.bool_]
    #: 0 for the first text of a pair and 1 for the second; all 0 for a single text.
    segment: NDArray[np.int64]


def maps_of(subject: hc.Subject, text: Given, stacks: tuple[str, ...]) -> Iterator[Map]:
    """Every head of some stacks on one text."""
    seen: list[Sighting] = []
    translated = "cross" in subject.anatomy.stacks
    intake = intake_of(subject.model, subject.tokenizer)
    batches = encode(
        [text.texts(translated)],
        subject.tokenizer,
        stacks=subject.anatomy.stacks,
        intake=intake,
        max_length=128,
        long="truncate",
    )
    with tap(subject, Needs(maps=True), stacks=stacks) as watch:
        for batch in batches:
            watch(batch, receive=seen.append)
    for sighting in seen:
        yield from _heads(sighting)


def _heads(sighting: Sighting) -> Iterator[Map]:
    assert sighting.maps is not None
    side = sighting.queries
    special = side.special[0].numpy()
    ends = side.separator[0].numpy()
    segment = np.minimum(np.cumsum(ends) - ends, 1)
    for place, head in enumerate(sighting.site.names):
        yield Map(head, sighting.maps[0, place].numpy(), special, segment)
