"""Scores without one head, on two data sets, and over training."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import headcount as hc
from headcount.errors import RunError, UsageError
from headcount.rooms.agreement.ranks import rank_agreement


def test_the_histogram_counts_every_head_around_the_whole_model(full: Path) -> None:
    panel = hc.plot.scores_without_one_head(full, bins=7).axes[0]
    table = hc.HeadTable.load(full)
    counts, edges = np.histogram(1.25 + table.numbers("ablation"), bins=7)  # more loss is worse
    assert [bar.get_height() for bar in panel.patches] == counts.tolist()
    assert panel.patches[0].get_x() == pytest.approx(edges[0])
    assert list(panel.lines[0].get_xdata()) == [1.25, 1.25]
    assert panel.get_xlabel() == "loss without one head"


def test_a_better_metric_goes_down_without_a_head() -> None:
    heads = [hc.Head("enc", 0, index) for index in range(2)]
    origins = {"ablation": {"settings": {"metric": "bleu", "baseline": 30.0}}}
    columns = [hc.Column("ablation", unit="bleu")]
    table = hc.HeadTable.of(heads, {"ablation": [2.0, np.nan]}, columns, origins=origins)
    panel = hc.plot.scores_without_one_head(table, bins=1).axes[0]
    bar = panel.patches[0]
    assert bar.get_height() == 1
    assert bar.get_x() <= 28 <= bar.get_x() + bar.get_width()


def test_a_table_that_forgot_the_whole_model_is_refused() -> None:
    table = hc.HeadTable.of([hc.Head("enc", 0, 0)], {"ablation": [1.0]})
    with pytest.raises(RunError, match="does not say how the whole model scored; `headcount score"):
        hc.plot.scores_without_one_head(table)


def test_two_data_sets_meet_in_points(full: Path) -> None:
    table = hc.HeadTable.load(full)
    other = hc.HeadTable.of(table.heads, {"gradient": 2 * table.numbers("gradient")})
    panel = hc.plot.two_data_sets(full, other, "gradient", names=("one", "two")).axes[0]
    points = np.concatenate([np.asarray(part.get_offsets()) for part in panel.collections])
    assert points[:, 0].tolist() == table.numbers("gradient").tolist()
    assert points[:, 1].tolist() == pytest.approx((2 * points[:, 0]).tolist())
    assert panel.get_title(loc="left") == "Pearson's r = 1.00 [1.00, 1.00]"
    assert panel.get_xlabel() == "Gradient, one"
    with pytest.raises(UsageError, match="different heads"):
        hc.plot.two_data_sets(full, table.stack("enc"), "gradient")


def test_two_scores_are_points_with_their_agreement_by_stack(full: Path) -> None:
    table = hc.HeadTable.load(full)
    figure = hc.plot.two_scores({"a": full, "b": full}, "gradient", "relevance")
    panel = figure.axes[1]
    own = panel.collections[0].get_offsets()
    wanted = table.frame.loc["enc", ["gradient", "relevance"]].to_numpy()
    assert np.asarray(own).tolist() == wanted.tolist()
    found = rank_agreement(*wanted.T, "spearman")
    said = panel.get_legend().get_texts()[0].get_text()
    assert said == f"enc {found.value:.2f} [{found.low:.2f}, {found.high:.2f}]"
    one = hc.HeadTable.of([hc.Head("enc", 0, 0)], {"confidence": [1.0], "relevance": [0.5]})
    assert hc.plot.two_scores(one).axes[0].get_legend().get_texts()[0].get_text() == "enc –"


def test_an_accuracy_has_a_bar_a_step() -> None:
    heads = [hc.Head("enc", 0, index) for index in range(4)]
    origins = {"ablation": {"settings": {"metric": "accuracy", "baseline": 0.8}}}
    columns = [hc.Column("ablation", unit="accuracy")]
    table = hc.HeadTable.of(heads, {"ablation": [0, 0.01, 0.03, 0]}, columns, origins=origins)
    bars = hc.plot.scores_without_one_head(table).axes[0].patches
    assert [bar.get_height() for bar in bars] == [1, 0, 1, 2]


def test_the_order_over_training_is_a_line_a_stack() -> None:
    frame = pd.DataFrame(
        {"step": [1, 10] * 2, "stack": ["all", "all", "enc", "enc"], "value": [0.1, 1, 0.3, 1]}
    ).assign(low=0.0, high=1.0)
    lines = hc.plot.order_over_training(frame).axes[0].lines
    assert [line.get_ydata().tolist() for line in lines[:2]] == [[0.1, 1.0], [0.3, 1.0]]
    with pytest.raises(UsageError, match="settling has no column 'low'"):
        hc.plot.order_over_training(frame.drop(columns="low"))
