"""Prose is linted, and the linter sees what it should."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
PROGRAM = [sys.executable, str(ROOT / "scripts" / "prose.py")]


def test_the_prose_is_plain() -> None:
    done = subprocess.run(PROGRAM, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_the_linter_sees_words_and_passes_over_code() -> None:
    code = (
        "import sys; sys.path.insert(0, 'scripts'); import prose; "
        "print([f[:2] for f in prose.faults('It is told.\\n`is told`\\nFor sure.')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[(1, 'is told'), (3, 'For sure')]"


def test_the_readability_of_pages_is_counted() -> None:
    code = (
        "import sys; sys.path.insert(0, 'scripts'); import readability; "
        "print(readability.figures('The head looks back. It was measured on ten texts.'))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert "'words_per_sentence': 5.0, 'passive': 0.5" in done.stdout


def test_a_page_answers_its_question_in_a_thousand_words() -> None:
    """Words of its prose; results, which hold their tables' stories, are listed and go down."""
    code = (
        "import sys; sys.path.insert(0, 'scripts'); import readability as r; "
        "print([name for name, text in r.pages(None).items() if r.prose_words(text) > 1000 "
        "and name != 'CHANGELOG.md'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    long = {"importance", "pruning", "roles", "speed", "together"}
    assert set(ast.literal_eval(done.stdout)) <= {f"docs/results/{name}.md" for name in long}


def test_sentences_of_a_page_are_short() -> None:
    """At most 20 words on average, outside results and decisions."""
    code = (
        "import sys; sys.path.insert(0, 'scripts'); import readability as r; "
        "print([name for name, text in r.pages(None).items() "
        "if r.figures(text)['words_per_sentence'] > 20])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    folders = ("docs/results/", "docs/decisions/", "CHANGELOG.md")
    assert [one for one in ast.literal_eval(done.stdout) if not one.startswith(folders)] == []
