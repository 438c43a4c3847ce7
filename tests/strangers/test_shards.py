"""A stranger's unfinished run: its shards name calls that were run once. None is."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from strangers.folders import broken_off
from strangers.pickles import containers, known_calls

from headcount.surveys import shards

CALLS = ["numpy.testing._private.utils.runstring", "numpy.load", "numpy.memmap"]


@pytest.fixture
def begun(
    headcount: Callable[..., Any],
    saved: Callable[[str], Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> list[Any]:
    """The command of a survey that was broken off, with one shard kept."""
    (tmp_path / "s.txt").write_text("Rain fell.\nShe left.\nTwo crows.\nIt swam.\n")
    monkeypatch.setattr(shards, "SHARD_ITEMS", 2)
    line = ["survey", saved("bert"), "--text", "s.txt", "-o", "run"]
    broken_off(headcount, line)
    return line


@pytest.mark.parametrize("kind", ["pickle", "torch", "npz"])
@pytest.mark.parametrize("name", CALLS)
def test_no_call_in_a_shard_is_run(
    name: str, kind: str, begun: list[Any], headcount: Callable[..., Any], tmp_path: Path
) -> None:
    mark = tmp_path / "mark"
    data = containers(known_calls(mark)[name])[kind]
    folder = next((tmp_path / "run" / "shards").rglob("journal.jsonl")).parent
    (file,) = (one for one in folder.iterdir() if one.name != "journal.jsonl")
    file.write_bytes(data)
    journal = folder / "journal.jsonl"
    head, line = journal.read_text().splitlines()
    unit = json.loads(line)
    unit["result"]["sha256"] = hashlib.sha256(data).hexdigest()
    journal.write_text(f"{head}\n{json.dumps(unit)}\n")
    ended = headcount(*begun)
    assert not mark.exists(), "code of the file was run"
    assert ended.code == 1
    assert ended.err.count("\n") == 1
    assert f"{file.name} is not what a survey keeps" in ended.err
