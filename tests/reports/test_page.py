"""The page as text: whole or not at all, nothing that could run but ours, and small."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import sys
from html import unescape
from pathlib import Path

import numpy as np
import pytest
from report_runs import ENCODER, HOSTILE, THREE, made_exhibit, made_run, made_table

import headcount as hc
from headcount.errors import RunError, UsageError
from headcount.records.heads import Head
from headcount.records.table import HeadTable
from headcount.reports.page import MODULES, Report, page_html, report, script, style
from headcount.reports.parts.numbers import Source, read_source

ASSETS = Path(__file__).parents[2] / "src" / "headcount" / "reports" / "assets"

#: Ways by which text becomes markup or code.
FORBIDDEN = (
    "innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function",
    "setHTML", "createContextualFragment", "DOMParser", "fetch(", "XMLHttpRequest", "import(",
    "javascript:", "http://", "https://",
)  # fmt: skip
#: A name is no address: the one that SVG needs to be SVG.
NAMESPACE = "http://www.w3.org/2000/svg"


@pytest.mark.parametrize("word", FORBIDDEN)
def test_the_script_never_makes_markup_and_never_asks(word: str) -> None:
    assert word not in script().replace(NAMESPACE, "")


def test_the_style_asks_for_nothing() -> None:
    assert "url(" not in style()
    assert "@import" not in style()


def test_modules_share_one_scope_without_clashes() -> None:
    pattern = re.compile(
        r"^(?:export )?(?:async )?(?:function\*?|const|let) ([\w$]+)", re.MULTILINE
    )
    names = [
        n for module in MODULES for n in pattern.findall((ASSETS / f"{module}.js").read_text())
    ]
    assert len(names) == len(set(names))


def test_modules_import_only_those_before_them() -> None:
    for place, module in enumerate(MODULES):
        wanted = re.findall(r'from "\./(\w+)\.js"', (ASSETS / f"{module}.js").read_text())
        assert set(wanted) <= set(MODULES[:place]), module


def test_every_module_is_joined() -> None:
    assert {file.stem for file in ASSETS.glob("*.js")} - {"serve"} == set(MODULES)


def test_only_our_script_and_style_may_run() -> None:
    html = page_html(Source(made_table()))
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', html)
    assert policy
    for text in (script(), style()):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy[1]
    assert policy[1].startswith("default-src 'none';")


def test_data_is_never_searched_for_holes_and_never_markup(tmp_path: Path) -> None:
    exhibit = made_exhibit(THREE, ["[CLS]", *HOSTILE, "[SEP]"], ["a", "b"], title="{{script}}")
    run = made_run(tmp_path / "r", THREE, model=HOSTILE[0], exhibits=[exhibit])
    html = page_html(read_source(run))
    assert html.count("<script") == 3 + 3 * 3
    assert "<img" not in html
    assert html.isascii() or not re.search(r"[\u200b\u202e]", html)
    inside = re.search(r'id="headcount-data">([^<]*)</script>', html)
    assert inside
    data = json.loads(inside[1])
    assert data["model"] == HOSTILE[0]
    assert data["exhibits"][0]["texts"]["src"]["tokens"] == ["[CLS]", *HOSTILE, "[SEP]"]


# --- where it is written -------------------------------------------------------------------------


def test_a_page_is_written_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "report.html"
    place.write_text("the old page")

    def breaks(*_: object) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr(sys.modules["headcount.reports.page"], "page_html", breaks)
    with pytest.raises(KeyboardInterrupt):
        report(made_table(), place)
    assert place.read_text() == "the old page"
    assert [file.name for file in tmp_path.iterdir()] == ["report.html"]


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"is a folder; name a file, e\.g\. .*report\.html"):
        report(made_table(), tmp_path)


def test_there_must_be_a_folder(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"There is no folder .*nowhere to write page\.html in"):
        report(made_table(), tmp_path / "nowhere" / "page.html")


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="needs a folder that takes no files")
def test_a_place_that_cannot_be_written_is_named() -> None:
    with pytest.raises(
        RunError, match=r"page\.html could not be written: .*Nothing was left behind"
    ):
        report(made_table({"enc": (1, 1)}), "/proc/page.html")


def test_fineness_is_one_of_three() -> None:
    with pytest.raises(UsageError, match=r"maps is 'sharp'; it is one of fine, coarse, none"):
        report(made_table(), "page.html", maps="sharp")  # type: ignore[arg-type]


def test_a_newer_run_is_refused_by_name(tmp_path: Path) -> None:
    run = made_run(tmp_path / "run", THREE)
    record = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps(record | {"schema": 99}))
    with pytest.raises(RunError, match="99"):
        report(run, tmp_path / "page.html")
    assert not (tmp_path / "page.html").exists()


def test_runs_of_other_sizes_are_not_compared(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"other has heads enc 7 x 3 and made enc 6 x 12"):
        report(made_table(), tmp_path / "p.html", compare=made_table({"enc": (7, 3)}, "other"))


# --- budgets of size -----------------------------------------------------------------------------


def test_script_and_style_are_small() -> None:
    """Counted as it lies in the page: without comments, with its indentation, names as written."""
    assert len(script().encode()) <= 100_000
    assert len(script(two=True).encode()) <= 100_000
    assert len(style().encode()) <= 28_000


def test_a_page_without_maps_is_small(tmp_path: Path) -> None:
    small = report(made_run(tmp_path / "s"), tmp_path / "s.html", maps="none").path
    assert small.stat().st_size <= 150_000
    many = made_run(tmp_path / "m", {"dec": (32, 32)}, exhibits=[])
    assert report(many, tmp_path / "m.html").path.stat().st_size <= 1_000_000


def test_maps_of_128_tokens_are_small(tmp_path: Path) -> None:
    exhibit = made_exhibit(ENCODER, [f"w{k}" for k in range(128)])
    run = made_run(tmp_path / "r", exhibits=[exhibit])
    fine = report(run, tmp_path / "f.html").path.stat().st_size
    coarse = report(run, tmp_path / "c.html", maps="coarse").path.stat().st_size
    assert coarse < fine <= 3_000_000


# --- `hc.report` --------------------------------------------------------------------------------


HEADS = [Head("enc", 0, 0), Head("enc", 0, 1)]


@pytest.fixture
def table() -> HeadTable:
    about = {"model": '<b>mine</b>" onload="x'}
    return HeadTable.of(HEADS, {"confidence": [0.2, np.nan]}, provenance=about)


def test_a_table_by_itself_is_enough(table: HeadTable, tmp_path: Path) -> None:
    page = hc.report(table, tmp_path / "r.html")
    assert page.path == tmp_path / "r.html"
    assert page.html == page.path.read_text(encoding="utf8")
    assert repr(page).startswith(f"Report('{tmp_path}/r.html', 0.")


def test_a_notebook_shows_it_in_a_frame_of_its_own(table: HeadTable, tmp_path: Path) -> None:
    page = hc.report(table, tmp_path / "r.html")
    inline = page._repr_html_()
    assert inline.startswith('<iframe sandbox="allow-scripts allow-downloads"')
    inside = inline.partition('srcdoc="')[2].partition('"')[0]
    assert unescape(inside) == page.html
    assert "trust the notebook" in inline


def test_a_large_page_is_pointed_to(
    table: HeadTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = hc.report(table, tmp_path / "r.html")
    monkeypatch.setattr(sys.modules[Report.__module__], "INLINE", 10)
    inline = page._repr_html_()
    assert "iframe" not in inline
    assert "<b>mine" not in inline
    assert "&lt;b&gt;mine" in inline
    assert str(page.path) in inline


def test_what_cannot_be_written_is_told(table: HeadTable, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is a folder; name a file"):
        hc.report(table, tmp_path)
    with pytest.raises(RunError, match="There is no folder"):
        hc.report(table, tmp_path / "no" / "r.html")
    with pytest.raises(RunError, match="There is no folder"):
        hc.report(tmp_path / "no-run", tmp_path / "r.html")
    with pytest.raises(UsageError, match="maps is 'huge'"):
        hc.report(table, tmp_path / "r.html", maps="huge")  # type: ignore[arg-type]
    assert not list(tmp_path.iterdir())


def test_opening_asks_the_browser(
    table: HeadTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    monkeypatch.setattr("webbrowser.open", lambda url: asked.append(url) or True)
    page = hc.report(table, tmp_path / "r.html")
    assert isinstance(page, Report)
    assert page.open()
    assert asked == [(tmp_path / "r.html").as_uri()]
