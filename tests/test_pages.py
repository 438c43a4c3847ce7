"""Every Python example on a page runs, and prints what the page says it prints."""

from __future__ import annotations

import doctest
import re
from pathlib import Path
from typing import Any

import pytest

from headcount.models.cache import PACKAGES, is_model, model_dir

ROOT = Path(__file__).parent.parent
BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
PAGES = [
    page
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
    if BLOCK.search(page.read_text(encoding="utf8"))
]


def skip_without_models(text: str) -> None:
    """Skip when an example loads a real model that was not fetched."""
    for name in PACKAGES:
        if f'"{name}"' in text and not is_model(model_dir(name)):
            pytest.skip(f"the model {name} is not in {model_dir(name).parent}; run `make models`")


def run_session(block: str, names: dict[str, Any], page: str) -> doctest.TestResults:
    """Run a session of `>>>` lines and compare what it prints; its names are kept."""
    test = doctest.DocTestParser().get_doctest(block, names, page, page, 0)
    result = doctest.DocTestRunner(optionflags=FLAGS).run(test, clear_globs=False)
    names.update(test.globs)
    return result


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_tells_the_truth(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = page.read_text(encoding="utf8")
    skip_without_models(text)
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": page.stem}
    for block in BLOCK.findall(text):
        if ">>>" in block:
            assert run_session(block, names, page.name).failed == 0
        else:
            exec(compile(block, page.name, "exec"), names)


def test_there_are_pages_to_read() -> None:
    assert len(PAGES) >= 2


def test_a_wrong_answer_is_seen() -> None:
    assert run_session(">>> 1 + 1\n3\n", {}, "wrong").failed == 1
