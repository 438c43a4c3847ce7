"""Lines between tokens are the maps of the exhibit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from report_runs import made_exhibit

import headcount as hc
from headcount.errors import RunError, UsageError
from headcount.records.exhibits import read_exhibits


def test_a_line_is_as_dark_as_the_weight(full: Path) -> None:
    figure = hc.plot.attention_lines(full, ["enc.1.2", "cross.0.3"], exhibit=1)
    exhibit = read_exhibits(full)[1]
    for panel, head in zip(figure.axes, [("enc", 1, 2), ("cross", 0, 3)], strict=True):
        weights = exhibit.maps[head[:2]][head[2]]
        drawn = {tuple(int(y) for y in line.get_ydata()): line.get_alpha() for line in panel.lines}
        seen = np.argwhere(weights >= 0.01)
        assert set(drawn) == {tuple(pair) for pair in seen.tolist()}
        assert all(drawn[q, k] == pytest.approx(float(weights[q, k])) for q, k in drawn)
    asked, answered = (exhibit.texts[side].tokens for side in exhibit.sides["cross"])
    assert [text.get_text() for text in figure.axes[1].texts] == [*asked, *answered]


def test_tokens_are_shown_as_they_are(tmp_path: Path) -> None:
    one = made_exhibit({"enc": (1, 1)}, ["[CLS]", r"$\oops$", "<b>", "[SEP]"])
    figure = hc.plot.attention_lines(one, "enc.0.0", path=tmp_path / "a.svg")
    assert figure.axes[0].texts[1].get_text() == r"$\oops$"
    assert (tmp_path / "a.svg").stat().st_size > 1000


def test_what_is_not_there_is_named(full: Path, bare: Path) -> None:
    with pytest.raises(RunError, match="has no exhibits; `headcount report MODEL --run RUN`"):
        hc.plot.attention_lines(bare, "enc.0.0")
    with pytest.raises(UsageError, match="no exhibit 7; the run has 2, from 0"):
        hc.plot.attention_lines(full, "enc.0.0", exhibit=7)
    with pytest.raises(UsageError, match=r"made-001 has no map of enc\.9\.0; name a head"):
        hc.plot.attention_lines(full, "enc.9.0")
    with pytest.raises(UsageError, match="No head is named"):
        hc.plot.attention_lines(full, [])
