"""`hc.report`: a page on disk, and the same page inline in a notebook."""

from __future__ import annotations

import sys
from html import unescape
from pathlib import Path

import numpy as np
import pytest

import headcount as hc
from headcount.errors import RunError, UsageError
from headcount.records.heads import Head
from headcount.records.table import HeadTable
from headcount.report.page import Report

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
