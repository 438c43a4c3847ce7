"""Findings use the words of docs/verdicts.md."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

from research.findings.rule import Verdict

ROOT = Path(__file__).parents[2]
PAGE = set(re.findall(r"`([a-z][a-z ]+)`", (ROOT / "docs" / "verdicts.md").read_text("utf8")))


def test_findings_have_the_same_words() -> None:
    assert set(get_args(Verdict)) <= PAGE
    page = (ROOT / "docs" / "results" / "findings.md").read_text("utf8")
    cells = re.findall(r"\| \*\*([^|]+?)\*\* \|", page)
    assert cells
    used = {word.strip() for cell in cells for word in re.split(r"[:,]", cell)}
    assert used <= PAGE, used - PAGE
