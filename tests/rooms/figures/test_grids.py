"""Grids show the table's numbers; what was not measured is hatched."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from report_runs import THREE, made_roles

import headcount as hc
from headcount.errors import UsageError


def cells(panel: Axes) -> Any:
    return panel.collections[0].get_array()


def hatched(panel: Axes) -> set[tuple[int, int]]:
    gone = [patch for patch in panel.patches if patch.get_gid() == "missing"]
    assert all(patch.get_hatch() for patch in gone)
    return {(int(patch.get_y()), int(patch.get_x())) for patch in gone}


def test_head_grids_have_a_panel_a_column_and_stack(full: Path) -> None:
    figure = hc.plot.head_grids(full, ["confidence", "next"])
    table = hc.HeadTable.load(full)
    panels = figure.axes[:6]
    titles = [panel.get_title(loc="left") for panel in panels]
    assert titles[:3] == ["Confidence, enc", "Confidence, dec", "Confidence, cross"]
    for panel, stack in zip(panels[:3], table.stacks, strict=True):
        wanted = table.frame.loc[stack, "confidence"].to_numpy().reshape(3, 4)
        assert (cells(panel) == wanted).all()
        assert not hatched(panel)
    assert np.ma.is_masked(cells(panels[4]))
    assert len(hatched(panels[4])) == 12  # next is not known of a decoder
    assert len({panel.collections[0].get_clim() for panel in panels[:3]}) == 1


def test_roles_are_marked_in_the_cells_of_their_heads(full: Path) -> None:
    panel = hc.plot.head_grids(full, ["confidence"]).axes[0]
    marks = {
        (int(line.get_ydata()[0]), int(line.get_xdata()[0]), str(line.get_gid()))
        for line in panel.lines
    }
    roles = made_roles(THREE)
    own = roles[roles["stack"] == "enc"]
    wanted = {(r.layer, r.head, f"role {r.role}") for r in own.itertuples()}
    assert marks == wanted
    assert not hc.plot.head_grids(full, ["confidence"], roles=False).axes[0].lines


def test_changes_are_the_cosines_and_end_at_one(full: Path) -> None:
    figure = hc.plot.changes({"a": full, "b": full})
    first, second = figure.axes[:2]
    assert cells(first).ravel().tolist() == pytest.approx(np.linspace(0.4, 1, 36)[:12].tolist())
    assert first.collections[0].get_clim() == second.collections[0].get_clim()
    assert first.collections[0].get_clim()[1] == 1
    low, high = hc.plot.changes(full, "entropy").axes[0].collections[0].get_clim()
    assert low == -high
    with pytest.raises(UsageError, match="no stack 'enc2' here; there is enc, dec, cross"):
        hc.plot.changes(full, stack="enc2")


def test_many_tasks_stand_in_rows_of_three(full: Path) -> None:
    figure = hc.plot.changes(dict.fromkeys("abcd", full))
    shown = [panel for panel in figure.axes if panel.collections and panel.get_title(loc="left")]
    assert [panel.get_title(loc="left")[0] for panel in shown] == list("abcd")
    assert len({round(panel.get_subplotspec().rowspan.start) for panel in shown}) == 2


def test_attention_to_features_and_along_links(full: Path) -> None:
    table = hc.HeadTable.load(full)
    panel = hc.plot.attention_to(full, ["noun"]).axes[0]
    assert hatched(panel) == {(0, 0)}
    wanted = table.frame.loc["enc", "to_noun"].to_numpy().reshape(3, 4)
    assert cells(panel).compressed().tolist() == wanted[np.isfinite(wanted)].tolist()
    figure = hc.plot.attention_to({"a": full, "b": full})
    assert [a.get_title(loc="left") for a in figure.axes[:4]][1:3] == [
        "to separator, b",
        "to first, a",
    ]
    linked = hc.plot.token_to_token(full, ["subject_to_verb"]).axes[0]
    assert (cells(linked) == table.frame.loc["enc", "self"].to_numpy().reshape(3, 4)).all()


def test_disabling_shows_gains_and_whole_layers_beside_them(full: Path) -> None:
    table = hc.HeadTable.load(full)
    cost = table.frame.loc["enc", "ablation"].to_numpy().reshape(3, 4)
    assert (cells(hc.plot.disabling(full).axes[0]) == -cost).all()
    layers = {"ablation_layer": [5.0 * head.layer for head in table.heads]}
    both = hc.plot.disabling(table.join(hc.HeadTable.of(table.heads, layers))).axes[0]
    assert cells(both)[:, -1].tolist() == [0, -5, -10]
    assert both.get_xticklabels()[-1].get_text() == "all"
    assert both.collections[0].get_clim()[1] == pytest.approx(np.abs(cost).max())


def test_the_first_row_is_the_mean_over_heads_of_the_last_layer(full: Path) -> None:
    panel = hc.plot.first_row({"a": full, "b": full}).axes[0]
    wanted = [0.1 * place + 0.015 for place in range(7)]
    assert cells(panel)[0].compressed().tolist() == pytest.approx(wanted)
    assert hatched(panel) == {(0, 7), (1, 7)}  # nothing is known of the first token itself
    with pytest.raises(UsageError, match="no row of the first token for the stack 'dec'"):
        hc.plot.first_row(full, stack="dec")
