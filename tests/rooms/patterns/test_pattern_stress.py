"""Both judges on shapes drawn by another hand: 8 to 512 tokens, one to four stripes and texts."""

from __future__ import annotations

import pytest
import torch
from pattern_shapes import KINDS, SIZES, Shape, shapes

from headcount.rooms.patterns.tally import Judge, classify

JUDGES: list[Judge] = ["network", "rule"]
#: Maps of 8 and 12 tokens have room for little: a text of three tokens is hardly a square.
SMALL = (8, 12)
#: The least share of maps told, of large ones and of small ones; chance is 0.2.
FLOOR = {"vertical_diagonal": (0.8, 0.7), "block": (0.9, 0.5), "block striped": (0.9, 0.8)}


def right(drawn: list[Shape], by: Judge, told: bool) -> float:
    """The share of maps whose pattern is told; `told` says where texts meet."""
    found = [
        classify(torch.from_numpy(one.weights), one.special, one.segment if told else None, by=by)
        == [one.pattern]
        for one in drawn
    ]
    return sum(found) / len(found)


def drawn(kind: str, sizes: tuple[int, ...]) -> list[Shape]:
    """Twelve maps of each size, two of large ones."""
    return [one for size in sizes for one in shapes(kind, size, 12 if size < 200 else 2)]


@pytest.mark.parametrize("by", JUDGES)
@pytest.mark.parametrize("kind", KINDS)
def test_every_pattern_is_told_at_any_size(kind: str, by: Judge) -> None:
    large = tuple(size for size in SIZES if size not in SMALL)
    floor = FLOOR.get(kind, (0.9, 0.85))
    assert right(drawn(kind, large), by, told=True) >= floor[0]
    assert right(drawn(kind, SMALL), by, told=True) >= floor[1]


@pytest.mark.parametrize("by", JUDGES)
@pytest.mark.parametrize("kind", KINDS)
def test_texts_need_not_be_told(kind: str, by: Judge) -> None:
    assert right(drawn(kind, (20, 33, 64, 128)), by, told=False) >= FLOOR.get(kind, (0.9, 0))[0]


@pytest.mark.parametrize("by", JUDGES)
@pytest.mark.parametrize("offset", [-3, -2, -1, 0, 1, 2, 3])
def test_a_line_beside_the_diagonal_is_diagonal(offset: int, by: Judge) -> None:
    for size in (24, 60, 300):
        near = torch.diag(torch.ones(size - abs(offset)), offset) + 0.3 / size
        assert classify(near / near.sum(1, keepdim=True), by=by) == ["diagonal"]
