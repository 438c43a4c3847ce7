"""Curves, and what is left along them, are the run's."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from report_runs import THREE, made_curve

import headcount as hc
from headcount.errors import UsageError

CURVE = made_curve(THREE, ("ablation", "gradient", "random 0", "random 1"))
VALUES = [30, 30, 30, 26, 22, 18]


def test_curves_are_values_over_heads_left() -> None:
    panel = hc.plot.pruning_curves(CURVE).axes[0]
    lines = {line.get_gid(): line for line in panel.lines}
    assert lines["order ablation"].get_xdata().tolist() == [6, 12, 18, 24, 30, 36]
    assert lines["order ablation"].get_ydata().tolist() == VALUES[::-1]
    assert list(lines["whole"].get_ydata()) == [30, 30]
    labels = list(dict.fromkeys(panel.get_legend_handles_labels()[1]))
    assert labels == ["ablation", "gradient", "random"]


def test_an_order_has_one_colour_in_all_panels() -> None:
    second = CURVE[CURVE["order"] == "gradient"]
    figure = hc.plot.pruning_curves({"a": CURVE, "b": second})
    colours = [
        next(line.get_color() for line in panel.lines if line.get_gid() == "order gradient")
        for panel in figure.axes
    ]
    assert colours[0] == colours[1]


def test_held_out_examples_and_one_metric_are_drawn() -> None:
    both = pd.concat([CURVE.assign(part="choose", value=99.0), CURVE, CURVE.assign(metric="loss")])
    assert hc.plot.pruning_curves(both).axes[0].lines[0].get_ydata().tolist() == VALUES[::-1]
    with pytest.raises(UsageError, match="no metric 'f1'; it has bleu, loss"):
        hc.plot.pruning_curves(both, "f1")


def test_healed_points_are_a_line_of_their_own() -> None:
    healed = CURVE[CURVE["order"] == "gradient"].iloc[3:].assign(healed=True, value=29.0)
    lines = hc.plot.pruning_curves(pd.concat([CURVE, healed])).axes[0].lines
    found = {line.get_gid(): line for line in lines}
    assert found["healed gradient"].get_ydata().tolist() == [29, 29, 29]
    assert found["healed gradient"].get_color() == found["order gradient"].get_color()


def test_stacks_are_drawn_in_percent_of_their_own_heads() -> None:
    stacks = pd.concat([CURVE, CURVE.assign(scope="enc"), CURVE.assign(scope="cross")])
    lines = hc.plot.pruning_by_stack(stacks, "gradient").axes[0].lines
    assert [line.get_label() for line in lines][:2] == ["enc", "cross"]
    assert lines[0].get_xdata().tolist() == pytest.approx(
        [0, 100 / 6, 200 / 6, 50, 400 / 6, 500 / 6]
    )
    with pytest.raises(UsageError, match=r"no stack by itself; .*--ranking by-stack"):
        hc.plot.pruning_by_stack(CURVE)


def test_training_is_told_in_percent_of_the_unpruned_score() -> None:
    panel = hc.plot.pruning_over_training({1: CURVE, 10: CURVE.assign(value=CURVE["value"] + 30)})
    first, second = panel.axes[0].lines
    assert first.get_ydata().tolist() == pytest.approx([100 * value / 30 for value in VALUES])
    assert second.get_ydata()[-1] == pytest.approx(80)
    assert second.get_label() == "after 10 (60 unpruned)"
    with pytest.raises(UsageError, match="mapping of epochs"):
        hc.plot.pruning_over_training({})


def test_gates_have_a_logarithmic_axis_and_intervals() -> None:
    gates = CURVE[CURVE["order"] == "gradient"].assign(order="gates")
    panel = hc.plot.gated_quality(gates).axes[0]
    assert panel.get_xscale() == "log"
    assert panel.lines[0].get_xdata().tolist() == [6, 12, 18, 24, 30, 36]
    with pytest.raises(UsageError, match="no order 'gates'; it has ablation, gradient"):
        hc.plot.gated_quality(CURVE)


def test_what_is_left_follows_the_curve(full: Path) -> None:
    stacks = hc.plot.stacks_left(full).axes[0]
    for line in stacks.lines:
        assert line.get_ydata()[0] == 100
    counts = sum(line.get_ydata() * 12 / 100 for line in stacks.lines)
    assert counts.tolist() == pytest.approx([36, 30, 24, 18, 12, 6])
    layers = hc.plot.layers_left(full, pool=2)
    numbers = [[int(text.get_text()) for text in panel.texts] for panel in layers.axes]
    assert np.array(numbers).reshape(3, 6, 2).sum(axis=(0, 2)).tolist() == [36, 30, 24, 18, 12, 6]


def test_functions_of_heads_that_are_left(full: Path) -> None:
    panel = hc.plot.functions_left(full, "enc").axes[0]
    heights = {c.get_label(): [bar.get_height() for bar in c] for c in panel.containers}
    assert heights["positional"][0] == 1  # enc.0.0, the first of the four roles in turn
    assert heights["positional"][0] + heights["syntactic"][0] + heights["none of these"][0] == 12
    assert panel.get_xticklabels()[0].get_text() == "12"
    with pytest.raises(UsageError, match="No head of the stack 'both' is left"):
        hc.plot.functions_left(full, "both")
    with pytest.raises(UsageError, match="no order 'gates'; it has ablation, random 0"):
        hc.plot.functions_left(full, order="gates")


def test_many_curves_stand_in_rows_of_two_and_can_be_logarithmic() -> None:
    figure = hc.plot.pruning_curves(dict.fromkeys("abc", CURVE), log=True, unit="groups")
    assert {panel.get_yscale() for panel in figure.axes[:3]} == {"log"}
    assert [panel.get_xlabel() for panel in figure.axes[:3]] == ["", "groups left", "groups left"]
    assert [panel.get_ylabel() for panel in figure.axes[:3]] == ["BLEU"] * 3


def test_gated_sets_before_healing_are_dotted_and_apart() -> None:
    gates = CURVE[CURVE["order"] == "gradient"].assign(order="gates", healed=False)
    healed = gates[gates["step"] > 0].assign(healed=True, value=29.5)
    both = hc.plot.gated_quality({"dev": pd.concat([gates, healed])}, unit="encoder heads").axes[0]
    lines = {line.get_gid(): line for line in both.lines if line.get_gid()}
    assert lines["dev, not healed"].get_ydata().tolist() == sorted(VALUES[1:])
    assert lines["dev, healed"].get_ydata().tolist() == [29.5] * 5 + [30]
    assert both.get_xlabel() == "encoder heads left"
    assert set(both.get_legend_handles_labels()[1]) == {"dev, healed", "dev, not healed"}
    bare = hc.plot.gated_quality(gates).axes[0].lines
    assert "not healed" not in {line.get_gid() for line in bare}
