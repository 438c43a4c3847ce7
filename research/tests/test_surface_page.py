"""The page of surface statistics: its table is that of the JSON, over as many blocks as it says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from research import DOCS, RESULTS
from research.surface.__main__ import tell
from research.surface.findings import COMPARED, filled


@pytest.fixture(scope="module")
def told() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((RESULTS / "surface.json").read_text(encoding="utf8"))
    return found


def test_the_page_says_what_the_json_says(told: dict[str, Any]) -> None:
    page = (DOCS / "surface.md").read_text(encoding="utf8")
    assert filled(page, told) == page
    spread = told["intervals"]
    size = spread["pairs"] // spread["blocks"]
    assert f"{spread['blocks']} disjoint blocks of {size} of the {spread['pairs']:,} pairs" in page
    assert set(COMPARED) == set(spread["minilm"]) == set(spread["e5-small"])


def test_other_figures_make_another_table(told: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "surface.md").write_text("a\n<!-- table: intervals -->\n<!-- end -->\nb\n")
    other = {**told["intervals"]["minilm"], "most_self": [7.5, 7.25, 7.75]}
    tell(told | {"intervals": told["intervals"] | {"minilm": other}}, tmp_path)
    page = (tmp_path / "surface.md").read_text(encoding="utf8")
    assert "| 7.5000 [7.2500, 7.7500] |" in page
    assert page.startswith("a\n")
    assert page.endswith("b\n")
    assert json.loads((tmp_path / "surface.json").read_text())["intervals"]["minilm"] == other
