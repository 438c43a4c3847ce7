"""Figures by layer: points are heads, lines are means, bars are shares."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import headcount as hc
from headcount.errors import UsageError
from headcount.run import Run


def test_positions_show_every_head_and_the_means_of_layers(full: Path) -> None:
    figure = hc.plot.positions(full)
    frame = hc.HeadTable.load(full).frame
    panel = figure.axes[0]
    points = next(c for c in panel.collections if c.get_gid() == "heads previous").get_offsets()
    assert points[:, 1].tolist() == frame.loc["enc", "previous"].tolist()
    means = next(line for line in panel.lines if line.get_gid() == "means previous")
    wanted = frame.loc["enc", "previous"].groupby("layer").mean().tolist()
    assert means.get_ydata().tolist() == pytest.approx(wanted)
    drawn = [line.get_gid() for line in figure.axes[1].lines]
    assert drawn == ["means previous", "means self"]  # next is not known of a decoder


def test_token_types_have_a_row_a_model(full: Path) -> None:
    figure = hc.plot.token_types({"a": full, "b": full})
    assert len(figure.axes) == 6
    assert figure.axes[3].get_title(loc="left") == "b enc"
    assert {line.get_label() for line in figure.axes[0].lines} == {
        "separator",
        "first token",
        "punctuation",
    }


def test_entropies_stand_below_uniform_attention(full: Path) -> None:
    lines = {line.get_gid(): line for line in hc.plot.entropies(full).axes[0].lines}
    assert list(lines["uniform"].get_ydata()) == [3.5, 3.5]
    assert {"means entropy", "means entropy_first"} <= lines.keys()


def test_noop_gradients_are_the_frames(full: Path) -> None:
    panel = hc.plot.noop_gradients(full).axes[0]
    lines = {line.get_gid(): line.get_ydata().tolist() for line in panel.lines}
    assert lines == {"separator": [0.0, 0.001, 0.002], "other": [0.001, 0.002, 0.003]}


def test_patterns_add_up_and_skip_what_is_not_known(full: Path) -> None:
    figure = hc.plot.patterns(full)
    assert [panel.get_title(loc="left") for panel in figure.axes] == ["enc", "dec"]
    heights = np.array([bar.get_height() for bar in figure.axes[0].patches]).reshape(5, 3)
    assert heights.sum(axis=0) == pytest.approx(1)
    frame = hc.HeadTable.load(full).frame.loc["enc", "pattern_vertical"]
    assert heights[0].tolist() == pytest.approx(frame.groupby("layer").mean().tolist())
    tasks = hc.plot.patterns({"x": full}, by="task").axes[0]
    assert [tick.get_text() for tick in tasks.get_xticklabels()] == ["x enc", "x dec"]
    with pytest.raises(UsageError, match="by is 'head'; bars are by 'layer' or by 'task'"):
        hc.plot.patterns(full, by="head")


def test_the_map_puts_heads_where_the_pairs_say(full: Path) -> None:
    figure = hc.plot.head_map(full)
    pairs = Run.open(full, create=False).read_arrays("pairs")
    drawn = figure.axes[0].collections[0]
    assert drawn.get_offsets().tolist() == pairs["mds"][:12].tolist()
    assert drawn.get_array().tolist() == [0] * 4 + [1] * 4 + [2] * 4
    by_role = hc.plot.head_map(full, by="role").axes[0]
    named = {c.get_gid(): len(c.get_offsets()) for c in by_role.collections}
    assert named["role none"] == 8
    assert sum(named.values()) == 12
    with pytest.raises(UsageError, match="by is 'cluster'"):
        hc.plot.head_map(full, by="cluster")  # type: ignore[arg-type]
