"""`headcount survey --patterns`: shares by layer for people, columns and a frame for machines."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from headcount.survey.pattern_network import PATTERNS

Command = Callable
Saved = Callable[[str], Path]

TEXT = "The old ferry leaves at noon, and nobody is ever late.\nTwo crows argued over bread.\n"


@pytest.fixture
def desk(headcount: Command, tmp_path: Path) -> Path:
    (tmp_path / "s.txt").write_text(TEXT, encoding="utf8")
    (tmp_path / "one.txt").write_text("a\n", encoding="utf8")
    return tmp_path


def test_shares_of_layers_are_printed(desk: Path, headcount: Command, saved: Saved) -> None:
    ended = headcount("survey", saved("bert"), "--text", "s.txt", "--patterns", "-o", "run")
    assert (ended.code, ended.err) == (0, "")
    lines = ended.out.splitlines()
    start = lines.index("Patterns, mean share over the heads of a layer:")
    assert lines[start + 1].split() == [
        "layer", "vertical", "diagonal", "vertical+diagonal", "block", "heterogeneous",
    ]  # fmt: skip
    for line in lines[start + 2 : start + 4]:
        assert sum(int(cell.rstrip("%")) for cell in line.split()[1:]) in range(98, 103)
    assert len(pd.read_parquet(desk / "run" / "patterns.parquet")) == 8 * 5


def test_a_column_by_its_name_is_enough(desk: Path, headcount: Command, saved: Saved) -> None:
    words = ["--columns", "pattern,pattern_block", "--json"]
    told = json.loads(headcount("survey", saved("bert"), "--text", "s.txt", *words).out)
    assert told["heads"][0]["pattern_block"] == 0
    assert told["heads"][0]["pattern"] in PATTERNS
    assert "entropy" not in told["columns"]


def test_a_text_too_short_is_na_with_a_reason(desk: Path, headcount: Command, saved: Saved) -> None:
    words = ["--text", "one.txt", "--patterns", "--json"]
    told = json.loads(headcount("survey", saved("bert"), *words).out)
    assert told["heads"][0]["pattern"] is None
    assert told["columns"]["pattern"]["note"] == "enc: no text has 4 tokens or more"


def test_there_is_no_author_code(desk: Path, headcount: Command, saved: Saved) -> None:
    words = ["--text", "s.txt", "--patterns", "--convention", "code"]
    ended = headcount("survey", saved("bert"), *words)
    assert ended.code == 2
    assert "the authors published no program for it" in ended.err
