"""Bars are the best heads of the run, beside its baselines."""

from __future__ import annotations

from pathlib import Path

import pytest
from matplotlib.axes import Axes

import headcount as hc
from headcount.errors import UsageError
from headcount.records.run import Run


def bars(panel: Axes, name: str) -> list[float]:
    found = next(c for c in panel.containers if c.get_label() == name)
    return [float(bar.get_height()) for bar in found]


def test_dependencies_show_the_best_head_of_each_relation(full: Path) -> None:
    panel = hc.plot.dependencies(full, ["obj", "nsubj"]).axes[0]
    frame = Run.open(full, create=False).read_frame("relations")
    best = frame.groupby("relation")["accuracy"].max()
    assert bars(panel, "best head") == pytest.approx([best["obj"], best["nsubj"]])
    assert bars(panel, "best fixed offset") == [0.4, 0.4]
    row = frame.loc[frame[frame["relation"] == "obj"]["accuracy"].idxmax()]
    assert panel.texts[0].get_text() == f"{row['layer']}.{row['head']}"


def test_heads_chosen_on_one_half_are_judged_on_the_other(full: Path) -> None:
    frame = Run.open(full, create=False).read_frame("relations")
    held = frame.assign(split="report", selected=(frame["layer"] == 1) & (frame["head"] == 2))
    both = hc.plot.dependencies(held, ["obj"]).axes[0]
    chosen = held[held["selected"] & (held["relation"] == "obj")]["accuracy"]
    assert bars(both, "best head") == chosen.tolist()


def test_a_relation_that_was_not_measured_is_refused(full: Path) -> None:
    with pytest.raises(UsageError, match=r"There is no relation 'iobj' to draw; there are .*obj"):
        hc.plot.dependencies(full, ["obj", "iobj"])


def test_coreference_shows_each_rule(full: Path) -> None:
    panel = hc.plot.coreference(full).axes[0]
    assert bars(panel, "best head") == [0.55, 0.55]  # enc.2.3: (3 + 4 * 2) / 20
    assert bars(panel, "nearest") == [0.3, 0.3]
    assert bars(panel, "rules") == [0.7, 0.7]
    assert panel.texts[0].get_text() == "2.3"


def test_several_models_have_a_panel_each(full: Path) -> None:
    figure = hc.plot.dependencies({"a": full, "b": full}, ["obj"])
    titles = [panel.get_title(loc="left") for panel in figure.axes]
    assert titles[0].startswith("a")
    assert titles[-1].startswith("b")
    both = hc.plot.coreference({"a": full, "b": full})
    assert [panel.get_title(loc="left") for panel in both.axes] == ["a", "b"]
    kinds = [tick.get_text() for tick in both.axes[0].get_xticklabels()]
    assert kinds == ["all", "pronoun"]  # as in the frame
