"""Tokenizers: a made-up one is never taken for a real one."""

from __future__ import annotations

from pathlib import Path

import pytest
from tiny import TINY
from tiny_tokenizers import BUILDERS

from headcount.models.find import FoundModel
from headcount.models.guards import quiet
from headcount.models.hub import options_for
from headcount.models.load import open_tokenizer


def opened(folder: Path) -> tuple[object, list[str]]:
    found = FoundModel("folder", str(folder), "x", "x")
    with quiet():
        return open_tokenizer(found, *options_for(found, trusted=False))


@pytest.mark.parametrize("family", TINY)
def test_no_family_makes_one_up(family: str, tmp_path: Path) -> None:
    TINY[family]().save_pretrained(tmp_path)
    note = "no tokenizer: there are no tokenizer files beside the model."
    assert opened(tmp_path) == (None, [note])


@pytest.mark.parametrize("kind", BUILDERS)
def test_every_real_one_is_taken(kind: str, tmp_path: Path) -> None:
    BUILDERS[kind]().save_pretrained(tmp_path)
    tokenizer, notes = opened(tmp_path)
    assert tokenizer is not None, notes
    assert not notes


def test_a_broken_file_is_told_of(tmp_path: Path) -> None:
    TINY["bert"]().save_pretrained(tmp_path)
    (tmp_path / "tokenizer.json").write_text("{")
    tokenizer, notes = opened(tmp_path)
    assert tokenizer is None
    assert notes[0].startswith("no tokenizer: ")
    assert "there are no tokenizer files" not in notes[0]
