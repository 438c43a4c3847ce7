"""A link in a run directory: nothing outside is read as ours, written or removed; one sentence."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from strangers.folders import state_of_folder
from tiny_subjects import encoder

from headcount.errors import RunError, UsageError
from headcount.records import InnerPath, Journal, Run, write_bytes
from headcount.reports.page import check_page
from headcount.rooms.exhibits import Exhibit, Text, read_exhibits, write_exhibits

Command = Callable[..., Any]
SHARDS = ("journal.jsonl", "shard-0.safetensors", "until-32.safetensors", "shard-0.pt")


@pytest.fixture
def canary(tmp_path: Path) -> Path:
    """A folder outside, with files of the names that headcount gives, and one that is read."""
    place = tmp_path / "canary"
    for folder in (".", "survey", "surveying", "survey/surveying"):
        (place / folder).mkdir(parents=True, exist_ok=True)
        for name in (*SHARDS, "index.json", "own.npz", "made-001.npz", "probe.json"):
            (place / folder / name).write_bytes(b"mine")
    return place


def exhibit(name: str) -> Exhibit:
    text = Text(["a", "b"], [False, False])
    maps = {("enc", 0): np.ones((1, 2, 2), "float32")}
    return Exhibit(name, "One", {"src": text}, {"enc": ("src", "src")}, maps)


@pytest.mark.parametrize("with_record", [False, True])
@pytest.mark.parametrize("link", ["shards", "shards/survey", "shards/survey/surveying"])
def test_a_survey_into_linked_shards(
    link: str,
    with_record: bool,
    canary: Path,
    headcount: Command,
    saved: Callable[[str], Path],
    tmp_path: Path,
) -> None:
    (tmp_path / "s.txt").write_text("Rain fell.\nShe left.\n")
    line = ["survey", saved("bert"), "--text", "s.txt", "-o", "run"]
    if with_record:
        assert headcount(*line).code == 0
    (tmp_path / "run" / link).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / "run" / link).symlink_to(canary)
    before = state_of_folder(canary)
    for more in ([], ["--replace"]):
        ended = headcount(*line, *more)
        assert state_of_folder(canary) == before
        assert ended.code == 1
        assert ended.err.count("\n") == 1
        assert f"run/{link} is a link, and nothing in a folder of headcount" in ended.err


@pytest.mark.parametrize(
    "name", ["run.json", "heads.parquet", "pairs.npz", "curve.parquet", "journal.jsonl", ".lock"]
)
def test_every_file_of_a_run_as_a_link(name: str, canary: Path, tmp_path: Path) -> None:
    place, mine = tmp_path / "run", canary / "own.npz"
    with Run.open(place) as run:
        run.write_arrays("pairs", {"a": np.zeros(1)})
        run.write_frame("curve", pd.DataFrame({"a": [1]}))
        run.journal({"seed": 0}).close()
    shutil.copy(place / name, mine) if (place / name).exists() else None
    (place / name).unlink(missing_ok=True)
    (place / name).symlink_to(mine)
    before = state_of_folder(canary)

    def use() -> None:
        with Run.open(place) as run:
            _ = run.has_table
            run.read_arrays("pairs")
            run.read_frame("curve")
            run.journal({"seed": 0}).close()

    with pytest.raises(RunError, match=rf"{name} is a link"):
        use()
    assert state_of_folder(canary) == before


def test_linked_exhibits(canary: Path, tmp_path: Path) -> None:
    with Run.open(tmp_path / "run") as run:
        write_exhibits(run, [exhibit("one"), exhibit("two")])
        (tmp_path / "run" / "exhibits" / "theirs.npz").write_bytes(b"theirs")
        write_exhibits(run, [exhibit("two")])
        left = sorted(path.name for path in (tmp_path / "run" / "exhibits").iterdir())
        assert left == ["index.json", "theirs.npz", "two.npz"], "what was not listed stays"
        shutil.rmtree(tmp_path / "run" / "exhibits")
        (tmp_path / "run" / "exhibits").symlink_to(canary)
        before = state_of_folder(canary)
        with pytest.raises(RunError, match="exhibits is a link"):
            write_exhibits(run, [exhibit("one")])
        with pytest.raises(RunError, match="exhibits is a link"):
            read_exhibits(run)
        with pytest.raises(RunError, match="exhibits is a link"):
            run.clear()
        assert state_of_folder(canary) == before


def test_a_journal_writes_through_no_link(tmp_path: Path) -> None:
    (tmp_path / "theirs").write_text("")
    (tmp_path / "journal.jsonl").symlink_to(tmp_path / "theirs")
    with pytest.raises(RunError, match=r"journal\.jsonl is a link"):
        Journal.open(tmp_path / "journal.jsonl", {})
    assert (tmp_path / "theirs").read_text() == ""


def test_only_what_headcount_names_is_removed(tmp_path: Path) -> None:
    folder = InnerPath(tmp_path) / "shards"
    for name in ("survey/surveying/journal.jsonl", "survey/surveying/shard-3.safetensors"):
        (tmp_path / "shards" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "shards" / name).touch()
    (tmp_path / "shards" / "thesis.tex").touch()
    folder.remove_all()
    assert [path.name for path in (tmp_path / "shards").rglob("*")] == ["thesis.tex"]


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    os.mkfifo(tmp_path / "run" / "run.json")
    with pytest.raises(RunError, match=r"run\.json is not a plain file"):
        Run.open(tmp_path / "run", create=False)


@pytest.mark.parametrize("link", [False, True])
def test_a_pipe_or_device_is_never_replaced_by_a_file(link: bool, tmp_path: Path) -> None:
    """Whoever may write to /dev would otherwise lose /dev/stdout for a page."""
    os.mkfifo(tmp_path / "pipe")
    place = tmp_path / "page.html" if link else tmp_path / "pipe"
    if link:
        place.symlink_to(tmp_path / "pipe")
    before = place.lstat().st_ino
    with pytest.raises(RunError, match=f"{place.name} is not a plain file; remove it, or choose"):
        write_bytes(place, b"page")
    with pytest.raises(UsageError, match=f"{place.name} is a pipe or a device; name a file"):
        check_page(place)
    with pytest.raises(UsageError, match=f"{place.name}' is a file; choose another name"):
        encoder().save(place, force=True)
    assert place.lstat().st_ino == before
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted({"pipe", place.name})
