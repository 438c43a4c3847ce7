"""Figures by layer: points are heads, lines are means, bars are shares."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from report_runs import made_exhibit

import headcount as hc
from headcount.errors import RunError, UsageError
from headcount.records.run import Run
from headcount.rooms.exhibits.exhibits import read_exhibits


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


def test_separators_get_attention_from_all_and_from_their_own(full: Path) -> None:
    encoder = hc.HeadTable.load(full).stack("enc")
    own = {"separator_to_separator": encoder.frame["separator"].to_numpy() / 2}
    lines = hc.plot.to_separators(encoder.join(hc.HeadTable.of(encoder.heads, own))).axes[0].lines
    first, second = (line.get_ydata() for line in lines)
    assert (first / 2).tolist() == pytest.approx(second.tolist())


def test_models_of_one_stack_stand_side_by_side(full: Path) -> None:
    encoder = hc.HeadTable.load(full).stack("enc")
    figure = hc.plot.positions({"a": encoder, "b": encoder})
    assert [panel.get_title(loc="left") for panel in figure.axes] == ["a", "b"]
    assert [panel.get_ylabel() for panel in figure.axes] == ["mean attention", ""]


def test_entropies_stand_below_uniform_attention(full: Path) -> None:
    lines = {line.get_gid(): line for line in hc.plot.entropies(full).axes[0].lines}
    assert list(lines["uniform"].get_ydata()) == [3.5, 3.5]
    assert {"means entropy", "means entropy_first"} <= lines.keys()


def test_noop_gradients_are_the_frames(full: Path) -> None:
    panel = hc.plot.noop_gradients(full).axes[0]
    lines = {line.get_gid(): line.get_ydata().tolist() for line in panel.lines}
    assert lines == {"separator": [0.0, 0.001, 0.002], "other": [0.001, 0.002, 0.003]}


def test_relative_gradients_are_shares_of_the_other_tokens(full: Path) -> None:
    frame = Run.open(full, create=False).read_frame("noop_layers")
    shares = frame.assign(share=[0.5, 0.4, 0.3, 1, 1, 1], share_low=0.0, share_high=1.0)
    figure = hc.plot.noop_gradients({"a": shares, "b": shares}, relative=True)
    lines = {line.get_gid(): list(line.get_ydata()) for line in figure.axes[1].lines}
    assert lines == {"other": [1, 1], "separator": [0.5, 0.4, 0.3]}
    with pytest.raises(UsageError, match="gradients has no column 'share'"):
        hc.plot.noop_gradients(frame, relative=True)


def test_shares_of_layers_are_drawn_as_they_are() -> None:
    shares = {f"pattern_{name}": [0.2, 0.0] for name in ("vertical", "diagonal", "block")}
    shares |= {"pattern_vertical_diagonal": [0.4, 0.0], "pattern_heterogeneous": [0.0, 1.0]}
    frame = pd.DataFrame(shares).assign(stack="enc", layer=[0, 1])
    panel = hc.plot.patterns({"RTE": frame}).axes[0]
    assert panel.get_title(loc="left") == "RTE"
    heights = [bar.get_height() for bar in panel.patches]
    assert heights == pytest.approx([0.2, 0, 0.2, 0, 0.4, 0, 0.2, 0, 0, 1])
    bars = hc.plot.patterns({"RTE": frame}, by="task").axes[0].patches
    assert [bar.get_height() for bar in bars] == pytest.approx([0.1, 0.1, 0.2, 0.1, 0.5])


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


def test_the_map_takes_verdicts_for_pairs_without_a_run() -> None:
    pairs = {"heads": np.array(["enc.0.0", "enc.0.1"]), "mds": np.array([[0, 1], [2, 3.0]])}
    roles = pd.DataFrame({"stack": ["enc"], "layer": [0], "head": [1], "role": ["sink"]})
    drawn = {
        c.get_gid(): c for c in hc.plot.head_map(pairs, "role", roles=roles).axes[0].collections
    }
    assert drawn["role sink"].get_offsets().tolist() == [[2, 3]]
    with pytest.raises(UsageError, match="frame of roles has no column 'role'"):
        hc.plot.head_map(pairs, roles=roles.drop(columns="role"))
    with pytest.raises(
        UsageError, match=r"pairs have no 'mds'; `headcount survey .*--show families"
    ):
        hc.plot.head_map({"heads": pairs["heads"]})


# --- Lines between tokens are the maps of the exhibit -------------------------------------------


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
