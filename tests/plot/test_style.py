"""Sizes, names of files, reproducible bytes, and what is said where matplotlib is missing."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from report_runs import THREE, made_curve

import headcount as hc
from headcount.errors import HeadcountError, UsageError
from headcount.report.parts.look import LOOKS
from headcount.report.plot.figure import SERIES, role_marker


@pytest.mark.parametrize("kind", ["svg", "pdf", "png"])
def test_the_same_run_gives_the_same_bytes(kind: str, bare: Path, tmp_path: Path) -> None:
    files = [tmp_path / f"{name}.{kind}" for name in ("one", "two")]
    for file in files:
        hc.plot.head_grids(bare, ["confidence"], path=file)
    first, second = (file.read_bytes() for file in files)
    assert first == second
    assert len(first) > 1_000


GALLERY = Path(__file__).parents[2] / "docs" / "how-to" / "figures.md"


def test_the_users_settings_do_not_change_a_figure(bare: Path, tmp_path: Path) -> None:
    import matplotlib

    hc.plot.head_grids(bare, ["confidence"], path=tmp_path / "one.svg")
    with matplotlib.rc_context({"font.size": 30, "axes.facecolor": "red"}):
        hc.plot.head_grids(bare, ["confidence"], path=tmp_path / "two.svg")
        assert matplotlib.rcParams["font.size"] == 30
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()


def test_a_figure_is_as_wide_as_a_column_or_a_page(bare: Path) -> None:
    widths = [
        hc.plot.head_grids(bare, ["confidence"], width=width).get_figwidth()
        for width in ("column", "page")
    ]
    assert widths == [3.3, 6.9]
    with pytest.raises(UsageError, match="width is 'wide'; it is 'column'"):
        hc.plot.head_grids(bare, ["confidence"], width="wide")  # type: ignore[arg-type]


def test_other_files_are_refused(bare: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"'a.jpg' cannot be a figure's name; it ends with .svg"):
        hc.plot.head_grids(bare, ["confidence"], path=tmp_path / "a.jpg")
    with pytest.raises(HeadcountError, match="could not be written"):
        hc.plot.head_grids(bare, ["confidence"], path=tmp_path / "no" / "a.svg")


def test_matplotlib_is_asked_for_by_name(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(HeadcountError, match=r"not installed; `pip install 'headcount\[plot\]'`"):
        hc.plot.head_grids(bare, ["confidence"])


def test_roles_and_lines_are_told_without_colour() -> None:
    assert len({str(role_marker(role)) for role in LOOKS}) == len(LOOKS)
    assert len({marker for _, marker in SERIES}) == len(SERIES)


def test_the_key_stays_inside_the_figure() -> None:
    frame = made_curve(THREE, ("ablation",))
    curves = {f"{step:,} steps of training": frame for step in (1000, 20000, 300000)}
    figure = hc.plot.pruning_over_training(curves)
    figure.draw_without_rendering()
    box = figure.legends[0].get_window_extent()
    assert box.x0 >= 0
    assert box.x1 <= figure.bbox.width


@pytest.mark.parametrize("name", hc.plot.__all__)
def test_a_figure_names_its_paper_has_an_example_and_is_in_the_gallery(name: str) -> None:
    said = getattr(hc.plot, name).__doc__
    assert " et al. 2019, " in said
    assert ">>>" in said
    assert f"`hc.plot.{name}(" in GALLERY.read_text(encoding="utf8")
