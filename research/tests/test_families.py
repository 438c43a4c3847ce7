"""The page of families says what its JSON says, and a family is tried as it is told."""

from __future__ import annotations

import json

import pytest

from research import RESULTS
from research.families.__main__ import COLUMNS, PAGE, family_row, family_table


def test_the_page_is_made_of_its_json() -> None:
    rows = json.loads((RESULTS / "families.json").read_text(encoding="utf8"))["rows"]
    assert family_table(rows) in PAGE.read_text(encoding="utf8")


@pytest.mark.parametrize("family", ["bert", "mamba"])
def test_a_family_is_tried(family: str) -> None:
    row = family_row(family, seconds=240)
    if family == "mamba":
        assert all("has no attention heads" in row[name] for name in COLUMNS)
    else:
        assert {row[name] for name in COLUMNS} == {"yes"}
