"""What a run lacks is named, with the command that makes it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from report_runs import THREE, made_curve

import headcount as hc
from headcount.errors import HeadcountError, RunError, UsageError
from headcount.records.run import Run
from headcount.reports.parts.look import looks
from headcount.rooms.figures.figure import SERIES, role_marker

LACKS: list[tuple[Callable[..., Any], str]] = [
    (hc.plot.head_grids, "no column 'relevance'.*--by relevance"),
    (hc.plot.positions, "no column 'previous'.*headcount survey MODEL --text"),
    (hc.plot.noop_gradients, "no noop_layers.parquet; `headcount survey MODEL .*--judging roles"),
    (hc.plot.head_map, "no pairs.npz; .*--show families"),
    (hc.plot.dependencies, "no relations.parquet; .*--treebank"),
    (hc.plot.coreference, "no coreference.parquet; .*--coref"),
    (hc.plot.pruning_curves, "no curve.parquet; `headcount prune"),
    (hc.plot.gated_quality, "no curve.parquet; `headcount prune"),
    (hc.plot.functions_left, "no curve.parquet; `headcount prune"),
    (hc.plot.scores_without_one_head, "no column 'ablation'.*--by ablation"),
    (hc.plot.patterns, "no column 'pattern_vertical'.*--show patterns"),
    (hc.plot.changes, "no changes.parquet; `headcount compare"),
    (hc.plot.first_row, "no features.parquet; .*--treebank"),
    (hc.plot.attention_to, "no column 'to_separator'.*--treebank"),
    (hc.plot.disabling, "no column 'ablation'.*--by ablation"),
]


@pytest.mark.parametrize(("draw", "said"), LACKS, ids=[draw.__name__ for draw, _ in LACKS])
def test_a_stage_that_is_missing_is_named(draw: Callable[..., Any], said: str, bare: Path) -> None:
    with pytest.raises(RunError, match=said) as caught:
        draw(bare)
    assert str(caught.value).count(". ") == 0
    assert "\n" not in str(caught.value)


def test_a_run_its_path_its_table_and_its_file_give_the_same(full: Path) -> None:
    run = Run.open(full, create=False)
    given = [run, full, str(full), run.read_table(), full / "heads.parquet"]
    drawn = [
        hc.plot.head_grids(one, ["confidence"], roles=False).axes[0].collections[0].get_array()
        for one in given
    ]
    assert all((one == drawn[0]).all() for one in drawn)


def test_a_folder_that_prune_wrote_is_its_run(full: Path, tmp_path: Path) -> None:
    (tmp_path / "run").symlink_to(full)
    assert len(hc.plot.pruning_curves(tmp_path).axes) == 1


def test_what_cannot_be_drawn_is_refused(tmp_path: Path) -> None:
    with pytest.raises(HeadcountError, match="nowhere"):
        hc.plot.positions(tmp_path / "nowhere")
    with pytest.raises(UsageError, match="nothing to draw; give one run or more"):
        hc.plot.positions({})
    with pytest.raises(UsageError, match="has no column 'gradient'; give a run's own"):
        hc.plot.noop_gradients(pd.DataFrame({"stack": [], "layer": [], "target": []}))
    table = hc.HeadTable.of([hc.Head("enc", 0, 0)], {"pattern": ["block"]})
    with pytest.raises(UsageError, match="holds words"):
        hc.plot.head_grids(table, ["pattern"])


COLUMNS = ["relevance", "confidence", "ablation", "previous", "next", "self", "separator", "first"]
COLUMNS += ["punctuation", "entropy", "entropy_first", "to_separator", "to_first"]
COLUMNS += [f"pattern_{name}" for name in ("vertical", "diagonal", "vertical_diagonal", "block")]
COLUMNS += ["pattern_heterogeneous"]
BY_HEAD: list[Callable[..., Any]] = [
    *(hc.plot.head_grids, hc.plot.positions, hc.plot.token_types, hc.plot.entropies),
    *(hc.plot.scores_without_one_head, hc.plot.two_scores, hc.plot.patterns),
    *(hc.plot.attention_to, hc.plot.disabling),
]


@pytest.mark.parametrize("draw", BY_HEAD, ids=[draw.__name__ for draw in BY_HEAD])
def test_a_table_that_knows_nothing_is_refused_and_one_head_is_drawn(draw: Any) -> None:
    origins = {"ablation": {"settings": {"metric": "loss", "baseline": 1.0}}}

    def table(values: list[float]) -> hc.HeadTable:
        heads = [hc.Head("enc", 0, index) for index in range(len(values))]
        return hc.HeadTable.of(heads, dict.fromkeys(COLUMNS, values), origins=origins)

    assert draw(table([0.5])).axes
    with pytest.raises(UsageError, match=r"^No head of this table has a value of '\w+'.*\.$"):
        draw(table([float("nan")] * 2))
    with pytest.raises(UsageError, match=r"^The table has no heads, so there is nothing to draw.$"):
        draw(table([]))


def test_why_nothing_is_known_is_told() -> None:
    table = hc.HeadTable.of(
        [hc.Head("dec", 0, 0)], {"next": [float("nan")]}, notes={"next": "A decoder sees no next."}
    )
    with pytest.raises(UsageError, match=r"value of 'next': A decoder sees no next\."):
        hc.plot.head_grids(table, ["next"])


def test_a_frame_without_numbers_is_refused() -> None:
    frame = pd.DataFrame({"stack": ["enc"], "layer": 0, "head": 0, "cosine": float("nan")})
    with pytest.raises(UsageError, match="changes has no number in 'cosine', so there is nothing"):
        hc.plot.changes(frame)
    with pytest.raises(UsageError, match="no stack 'enc' here; there is dec, so say stack='dec'"):
        hc.plot.changes(frame.assign(stack="dec", cosine=1.0))


# --- Sizes, names of files, reproducible bytes, and what is said where matplotlib is  -----------


@pytest.mark.parametrize("kind", ["svg", "pdf", "png"])
def test_the_same_run_gives_the_same_bytes(kind: str, bare: Path, tmp_path: Path) -> None:
    files = [tmp_path / f"{name}.{kind}" for name in ("one", "two")]
    for file in files:
        hc.plot.head_grids(bare, ["confidence"], path=file)
    first, second = (file.read_bytes() for file in files)
    assert first == second
    assert len(first) > 1_000


GALLERY = Path(__file__).parents[3] / "docs" / "how-to" / "figures.md"


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


def test_a_notebook_shows_a_figure_as_it_is(bare: Path) -> None:
    figure = hc.plot.head_grids(bare, ["confidence"])
    assert figure._repr_png_().startswith(b"\x89PNG")
    with pytest.raises(TypeError, match="colour"):
        hc.plot.head_grids(bare, ["confidence"], colour="red")  # type: ignore[call-arg]


def test_matplotlib_is_asked_for_by_name(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(HeadcountError, match=r"not installed; `pip install 'headcount\[plot\]'`"):
        hc.plot.head_grids(bare, ["confidence"])


def test_roles_and_lines_are_told_without_colour() -> None:
    assert len({str(role_marker(role)) for role in looks()}) == len(looks())
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
