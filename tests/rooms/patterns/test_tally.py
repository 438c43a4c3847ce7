"""Patterns of single maps: the words of the definition, drawn, told by both judges."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from tiny_subjects import encoder, translator

import headcount as hc
from headcount.errors import InputError, UsageError
from headcount.rooms.patterns.tally import (
    PATTERN_COLUMNS,
    PATTERNS,
    check_judge,
    classify,
    layer_shares,
)

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
    with pytest.raises(InputError, match="The map is 5 x 8; patterns are of square maps"):
        classify(torch.full((5, 8), 1 / 8))


def test_weights_that_are_no_numbers_are_refused() -> None:
    with pytest.raises(InputError, match="not a number"):
        classify(torch.full((5, 5), torch.nan))


def test_an_unknown_judge_is_refused() -> None:
    with pytest.raises(UsageError, match="named by 'network' or 'rule', not by 'eye'"):
        check_judge("eye")


# --- Shares of patterns in a survey -------------------------------------------------------------


NAMES = [column.name for column in PATTERN_COLUMNS]
TEXTS = [
    "the cat sat on the mat and the dog ran home",
    "rain fell",
    "it was late when the old dog came back to the house by the river",
    "a man saw the cat",
]


@pytest.mark.parametrize("by", ["network", "rule"])
def test_shares_do_not_depend_on_batches(by: str) -> None:
    tables = [
        hc.survey(
            encoder(),
            TEXTS,
            tallies=[f"patterns:{by}"],
            columns=["pattern"],
            reading=hc.ReadingOptions(batch_size=size),
        )  # type: ignore[arg-type]
        for size in (1, 4)
    ]
    pd.testing.assert_frame_equal(tables[0].frame, tables[1].frame)
    shares = tables[0].frame[NAMES].to_numpy(dtype=float)
    assert np.allclose(shares.sum(1), 1)


def test_the_column_and_the_frame_say_the_same() -> None:
    table = hc.survey(encoder(), TEXTS, tallies=["patterns:rule"])
    frame = table.details["patterns"]
    assert len(frame) == len(table) * len(PATTERNS)
    first = frame[(frame["layer"] == 0) & (frame["head"] == 0)]
    assert table.frame["pattern"].iloc[0] == first.loc[first["share"].idxmax(), "pattern"]
    assert (frame["low"] <= frame["share"]).all()
    assert (frame["share"] <= frame["high"]).all()
    assert "entropy" in table.names


def test_layers_average_their_heads() -> None:
    table = hc.survey(encoder(), TEXTS, columns=["pattern"], tallies=["patterns:rule"])
    layers = layer_shares(table)
    one = table.frame.xs(0, level="layer")["pattern_vertical"].mean()
    assert layers.loc[("enc", 0), "vertical"] == pytest.approx(one)


def test_cross_attention_has_no_pattern() -> None:
    pairs = [("the cat sat on the mat", "the cat sat on the mat")]
    table = hc.survey(translator(), pairs, columns=["pattern"], tallies=["patterns:rule"])
    cross = table.stack("cross").frame
    assert cross[NAMES].isna().all(axis=None)
    assert cross["pattern"].isna().all()
    assert "cross: queries and keys are different texts" in table.notes["pattern"]


def test_texts_too_short_for_a_pattern_are_na() -> None:
    table = hc.survey(encoder(), ["a"], columns=["pattern"], tallies=["patterns:rule"])
    assert table.frame["pattern"].isna().all()
    assert "no text has 4 tokens or more" in table.notes["pattern_vertical"]
    assert table.details["patterns"].empty


def test_there_is_no_author_code() -> None:
    with pytest.raises(UsageError, match="Patterns do not exist under the convention 'code'"):
        hc.survey(
            encoder(), TEXTS, tallies=["patterns"], reading=hc.ReadingOptions(convention="code")
        )


def test_a_run_keeps_the_frame(tmp_path) -> None:  # type: ignore[no-untyped-def]
    table = hc.survey(encoder(), TEXTS, columns=["pattern"], tallies=["patterns:rule"])
    table.save(tmp_path / "run")
    again = hc.HeadTable.load(tmp_path / "run")
    assert again.frame["pattern"].tolist() == table.frame["pattern"].tolist()
    assert len(again.details["patterns"]) == len(table.details["patterns"])
