"""Every example on a page runs, and prints what the page says it prints."""

from __future__ import annotations

import doctest
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from headcount.models.finding import PACKAGES, is_model, model_dir

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PYTHON = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
CONSOLE = re.compile(r"^```console\n(.*?)^```", re.DOTALL | re.MULTILINE)
#: Hub ids of pages, read from the folder that `make models` fetched: the same weights.
HUB = {"sentence-transformers/all-MiniLM-L6-v2": "minilm"}
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def pages_with(pattern: re.Pattern[str]) -> list[Any]:
    """The pages that hold such a block, named by their path."""
    held = [page for page in PAGES if pattern.search(page.read_text(encoding="utf8"))]
    return [pytest.param(page, id=str(page.relative_to(ROOT))) for page in held]


def blocks(pattern: re.Pattern[str], page: Path) -> list[str]:
    """The blocks of a page; skips when one names a real model that was not fetched."""
    text = page.read_text(encoding="utf8")
    for name, local in HUB.items():
        text = text.replace(f'"{name}"', f'"{local}"')
    found: list[str] = pattern.findall(text)
    for name in PACKAGES:
        if re.search(rf"\b{name}\b", "".join(found)) and not is_model(model_dir(name)):
            pytest.skip(f"the model {name} is not in {model_dir(name).parent}; run `make models`")
    return found


def run_session(block: str, names: dict[str, Any], page: str) -> doctest.TestResults:
    """Run a session of `>>>` lines and compare what it prints; its names are kept."""
    test = doctest.DocTestParser().get_doctest(block, names, page, page, 0)
    result = doctest.DocTestRunner(optionflags=FLAGS).run(test, clear_globs=False)
    names.update(test.globs)
    return result


def run_command(line: str) -> str:
    """What a `headcount ...` line prints."""
    program, *words = shlex.split(line)
    assert program == "headcount", line
    start = [sys.executable, "-c", "from headcount.cli.main import run; run()"]
    wide = os.environ | {"COLUMNS": "100"}
    done = subprocess.run([*start, *words], capture_output=True, text=True, env=wide)
    assert done.returncode == 0, done.stderr
    return done.stdout


def is_told(printed: str, told: str) -> bool:
    """Whether a command printed what the page tells; `...` on the page stands for anything."""
    return doctest.OutputChecker().check_output(told, printed, FLAGS)


@pytest.mark.parametrize("page", pages_with(PYTHON))
def test_python_does_what_the_page_says(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": page.stem}
    for block in blocks(PYTHON, page):
        if ">>>" in block:
            assert run_session(block, names, page.name).failed == 0
        else:
            exec(compile(block, page.name, "exec", dont_inherit=True), names)


@pytest.mark.parametrize("page", pages_with(CONSOLE))
def test_commands_print_what_the_page_says(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "src"))
    monkeypatch.chdir(tmp_path)
    for block in blocks(CONSOLE, page):
        for step in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            line, told = step.split("\n", 1)
            printed = run_command(line)
            assert is_told(printed, told), printed


def test_there_are_examples_to_run() -> None:
    assert len(pages_with(PYTHON)) >= 2
    assert pages_with(CONSOLE)


def test_a_wrong_answer_is_seen() -> None:
    assert run_session(">>> 1 + 1\n3\n", {}, "wrong").failed == 1
    assert is_told("a  b\n c\n", "a b\n...\n")
    assert not is_told("a b\n", "a c\n")
