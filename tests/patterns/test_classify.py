"""Patterns of single maps: the words of the definition, drawn, told by both judges."""

from __future__ import annotations

import pytest
import torch

from headcount.errors import InputError, UsageError
from headcount.survey.patterns import check_judge, classify

JUDGES = ["network", "rule"]


def rows(weights: torch.Tensor) -> torch.Tensor:
    """Weights that add up to 1."""
    return weights / weights.sum(-1, keepdim=True)


def ground(size: int) -> torch.Tensor:
    """A little noise everywhere."""
    return torch.rand(size, size, generator=torch.Generator().manual_seed(size)) / size


def drawn(pattern: str, size: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """A plain case of each pattern: `[CLS] a [SEP] b [SEP]`."""
    middle = size // 2
    special = torch.zeros(size, dtype=torch.bool)
    special[[0, middle, size - 1]] = True
    segment = (torch.arange(size) > middle).long()
    columns, line = torch.zeros(size, size), torch.eye(size)
    columns[:, special] = 1.0
    own = (segment[:, None] == segment).float() / middle
    shape = {
        "vertical": columns,
        "diagonal": 2 * line,
        "vertical_diagonal": columns + 2 * line,
        "block": 4 * own,
        "heterogeneous": torch.zeros(size, size),
    }[pattern]
    return rows(shape + ground(size)), special, segment


@pytest.mark.parametrize("by", JUDGES)
@pytest.mark.parametrize("size", [12, 30, 100])
@pytest.mark.parametrize("pattern", ["vertical", "diagonal", "vertical_diagonal", "block"])
def test_plain_cases_are_told(pattern: str, size: int, by: str) -> None:
    assert classify(*drawn(pattern, size), by=by) == [pattern]  # type: ignore[arg-type]


@pytest.mark.parametrize("by", JUDGES)
def test_noise_is_heterogeneous(by: str) -> None:
    assert classify(*drawn("heterogeneous", 40), by=by) == ["heterogeneous"]  # type: ignore[arg-type]


@pytest.mark.parametrize("by", JUDGES)
def test_a_head_is_told_alone_as_among_others(by: str) -> None:
    maps, special, segment = drawn("vertical", 20)
    both = torch.stack([maps, drawn("diagonal", 20)[0]])
    assert classify(both, special, segment, by=by) == [  # type: ignore[arg-type]
        classify(one, special, segment, by=by)[0]  # type: ignore[arg-type]
        for one in both
    ]


@pytest.mark.parametrize("by", JUDGES)
def test_a_causal_sink_is_vertical(by: str) -> None:
    size = 24
    maps = torch.tril(ground(size))
    maps[:, 0] += 2
    special = torch.arange(size) == 0
    assert classify(rows(maps), special, by=by) == ["vertical"]  # type: ignore[arg-type]


@pytest.mark.parametrize("by", JUDGES)
def test_a_single_text_has_no_block(by: str) -> None:
    maps, special, segment = drawn("block", 40)
    assert classify(maps, special, 0 * segment, by=by) != ["block"]  # type: ignore[arg-type]


@pytest.mark.parametrize("size", [1, 2, 3])
def test_a_tiny_map_is_refused_in_a_sentence(size: int) -> None:
    with pytest.raises(InputError, match=rf"The map is {size} x {size}; a pattern needs 4 tokens"):
        classify(torch.full((size, size), 1 / size))


def test_a_rectangle_is_refused() -> None:
    with pytest.raises(InputError, match="The map is 5 x 8; patterns are told of square maps"):
        classify(torch.full((5, 8), 1 / 8))


def test_weights_that_are_no_numbers_are_refused() -> None:
    with pytest.raises(InputError, match="not a number"):
        classify(torch.full((5, 5), torch.nan))


def test_an_unknown_judge_is_refused() -> None:
    with pytest.raises(UsageError, match="told by 'network' or 'rule', not by 'eye'"):
        check_judge("eye")
