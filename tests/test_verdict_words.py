"""One vocabulary for verdicts: the words of the code are those of docs/verdicts.md."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path
from typing import Any

from headcount.rooms.agreement import agreement, survival
from headcount.rooms.knockout import whole_jobs
from headcount.rooms.relations.page import STATUS
from headcount.surveys.roles import KINDS

ROOT = Path(__file__).parent.parent
PAGE = set(re.findall(r"`([a-z][a-z ]+)`", (ROOT / "docs" / "verdicts.md").read_text("utf8")))
#: Other words for the same: they would be a second vocabulary.
SYNONYMS = re.compile(r"\b(?:inconclusive|undecided|no verdict possible)\b", re.I)


def returned(function: Any) -> set[str]:
    """The texts that a function returns."""
    tree = ast.parse(inspect.getsource(function))
    returns = [node.value for node in ast.walk(tree) if isinstance(node, ast.Return)]
    words = [one for value in returns if value for one in ast.walk(value)]
    return {
        one.value
        for one in words
        if isinstance(one, ast.Constant) and isinstance(one.value, str) and one.value != "delta"
    }


def test_every_answer_of_the_code_is_on_the_page() -> None:
    assert returned(whole_jobs._answer) == {"more", "less", "cannot tell", "not compared"}
    assert returned(agreement._answer) >= {"more", "less", "no large difference", "cannot tell"}
    assert returned(whole_jobs._answer) | set(STATUS) <= PAGE
    assert {KINDS[role].says for role in KINDS} <= PAGE
    changes = set(re.findall(r'"(kept|removed|lost|gained)"', inspect.getsource(survival)))
    assert changes == {"kept", "removed", "lost", "gained"}
    assert changes <= PAGE


def test_no_page_has_another_word_for_cannot_tell() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    assert not [str(page) for page in pages if SYNONYMS.search(page.read_text("utf8"))]
