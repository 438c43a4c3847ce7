"""Shares of patterns in a survey: what a head's maps show, and nothing of padding or batches."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from tiny_subjects import encoder, translator

import headcount as hc
from headcount.errors import UsageError
from headcount.survey.pattern_network import PATTERN_COLUMNS, PATTERNS
from headcount.survey.patterns import layer_shares

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
        hc.survey(encoder(), TEXTS, patterns=by, columns=["pattern"], batch_size=size)  # type: ignore[arg-type]
        for size in (1, 4)
    ]
    pd.testing.assert_frame_equal(tables[0].frame, tables[1].frame)
    shares = tables[0].frame[NAMES].to_numpy(dtype=float)
    assert np.allclose(shares.sum(1), 1)


def test_the_column_and_the_frame_say_the_same() -> None:
    table = hc.survey(encoder(), TEXTS, patterns="rule")
    frame = table.details["patterns"]
    assert len(frame) == len(table) * len(PATTERNS)
    first = frame[(frame["layer"] == 0) & (frame["head"] == 0)]
    assert table.frame["pattern"].iloc[0] == first.loc[first["share"].idxmax(), "pattern"]
    assert (frame["low"] <= frame["share"]).all()
    assert (frame["share"] <= frame["high"]).all()
    assert "entropy" in table.names


def test_layers_average_their_heads() -> None:
    table = hc.survey(encoder(), TEXTS, patterns="rule", columns=["pattern"])
    layers = layer_shares(table)
    one = table.frame.xs(0, level="layer")["pattern_vertical"].mean()
    assert layers.loc[("enc", 0), "vertical"] == pytest.approx(one)


def test_cross_attention_has_no_pattern() -> None:
    pairs = [("the cat sat on the mat", "the cat sat on the mat")]
    table = hc.survey(translator(), pairs, patterns="rule", columns=["pattern"])
    cross = table.stack("cross").frame
    assert cross[NAMES].isna().all(axis=None)
    assert cross["pattern"].isna().all()
    assert "cross: queries and keys are different texts" in table.notes["pattern"]


def test_texts_too_short_for_a_pattern_are_na() -> None:
    table = hc.survey(encoder(), ["a"], patterns="rule", columns=["pattern"])
    assert table.frame["pattern"].isna().all()
    assert "no text has 4 tokens or more" in table.notes["pattern_vertical"]
    assert table.details["patterns"].empty


def test_there_is_no_author_code() -> None:
    with pytest.raises(UsageError, match="Patterns do not exist under the convention 'code'"):
        hc.survey(encoder(), TEXTS, patterns=True, convention="code")


def test_a_run_keeps_the_frame(tmp_path) -> None:  # type: ignore[no-untyped-def]
    table = hc.survey(encoder(), TEXTS, patterns="rule", columns=["pattern"])
    table.save(tmp_path / "run")
    again = hc.HeadTable.load(tmp_path / "run")
    assert again.frame["pattern"].tolist() == table.frame["pattern"].tolist()
    assert len(again.details["patterns"]) == len(table.details["patterns"])
