"""`headcount report`: a page from a model or from a run, and what it says when it cannot."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import headcount as hc
from headcount.cli.report import summarise
from headcount.records.heads import Head
from headcount.records.run import FRAMES, Run
from headcount.records.table import HeadTable
from headcount.reports import PageOptions
from headcount.reports.page import Report

Command = Callable
Saved = Callable[[str], Path]

HEADS = [Head("enc", layer, head) for layer in range(2) for head in range(4)]
TEXT = (
    "The old ferry leaves at noon, and nobody is late.\nTwo crows argued about a piece of bread.\n"
)


@pytest.fixture
def desk(headcount: Command, tmp_path: Path) -> Path:
    """Runs of every kind, good and bad; commands run beside them."""
    (tmp_path / "s.txt").write_text(TEXT * 3)
    (tmp_path / "empty").mkdir()
    (tmp_path / "newer").mkdir()
    (tmp_path / "newer" / "run.json").write_text('{"schema": 99}')
    with Run.open(tmp_path / "bare") as run:
        run.note("nothing was measured")
    _write(tmp_path / "one", {"confidence": np.linspace(0, 1, 8)})
    _write(tmp_path / "nan", {"confidence": np.full(8, np.nan), "gradient": np.full(8, np.nan)})
    return tmp_path


def _write(place: Path, columns: dict[str, np.ndarray]) -> None:
    with Run.open(place) as run:
        run.write_table(HeadTable.of(HEADS, columns, provenance={"model": "mine"}))


def is_whole(page: Path) -> bool:
    text = page.read_text(encoding="utf8")
    return text.startswith("<!doctype html>") and text.rstrip().endswith("</html>")


# --- a run is drawn as it is ----------------------------------------------------------------------


@pytest.mark.parametrize("run", ["one", "nan", "one/heads.parquet"])
def test_a_page_from_little(desk: Path, headcount: Command, run: str) -> None:
    ended = headcount("report", run)
    assert ended.code == 0, ended.err
    assert "\nWrote report.html (0." in ended.out
    assert is_whole(desk / "report.html")
    told = " ".join(ended.out.split())
    assert "Not in this run, and how to measure it: Roles headcount survey MODEL --treebank" in told
    assert "Pruning curve headcount prune MODEL --task ... -o DIR" in told
    assert ("Gradient importance headcount score MODEL" in told) == (run != "nan")
    assert "All at once: headcount report MODEL --task ... --run DIR" in told


def test_a_summary_for_machines(desk: Path, headcount: Command) -> None:
    ended = headcount("report", "one", "-o", "a.html", "--json")
    found = json.loads(ended.out)
    assert found["report"] == "a.html"
    assert found["bytes"] == (desk / "a.html").stat().st_size
    assert (found["heads"], found["columns"], found["stages"]) == (8, ["confidence"], [])
    ablation = {"what": "What removing a head costs"}
    ablation["command"] = "headcount score MODEL --task ... --by ablation -o one"
    assert ablation in found["missing"]


def test_a_head_counts_once_for_each_of_its_roles(desk: Path) -> None:
    verdicts = [("enc", 0, 1, "feature"), ("enc", 0, 1, "feature"), ("enc", 0, 1, "sink")]
    frame = pd.DataFrame(verdicts, columns=["stack", "layer", "head", "role"])
    with Run.open(desk / "one") as run:
        run.write_frame("roles", frame.reindex(columns=FRAMES["roles"]))
    found = summarise(Report(desk / "s.txt", desk / "one"), PageOptions(exhibits=False))
    assert (found["with_role"], found["roles"]) == (1, {"feature": 1, "sink": 1})


def test_two_runs_beside_each_other(desk: Path, headcount: Command) -> None:
    ended = headcount("report", "one", "--compare", "nan")
    assert ended.code == 0, ended.err
    assert is_whole(desk / "report.html")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["empty"], "empty/ is empty: it holds neither a run nor a model; name another one."),
        (["newer"], "newer/ was written with schema 99"),
        (["bare"], "bare/ has no head table yet"),
        (["one", "-o", "empty"], "empty is a folder; name a file, e.g. empty/report.html."),
        (["one", "-o", "no/where/r.html"], "There is no folder no/where to write r.html in"),
        (["one", "--thorough"], "--thorough measures something, and one is a run"),
        (["one", "--engine", "ray"], "--engine measures something, and one is a run"),
        (["one", "--text", "s.txt"], "name a model, with --run one to continue that run"),
        (["one", "--compare", "empty"], "empty/ is empty, so there is no run in it"),
        (["one", "--compare", "bare"], "bare/ has no head table yet"),
        (["one", "--page", "maps=huge"], "--page maps is 'huge'; choose fine, coarse or none."),
        (["there-is-no-such-model"], "there-is-no-such-model"),
        (["minilm", "--task", "lm"], "names no file"),
        (["minilm", "--text", "gone.txt"], "gone.txt"),
    ],
)
def test_what_cannot_be_is_told_and_leaves_no_page(
    desk: Path, headcount: Command, words: list[str], told: str
) -> None:
    ended = headcount("report", *words)
    assert ended.code in (1, 2)
    assert told in " ".join(ended.err.split())
    assert "Traceback" not in ended.err
    assert not list(desk.rglob("*.html"))


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_is_told(desk: Path, headcount: Command) -> None:
    (desk / "empty").chmod(0o500)
    ended = headcount("report", "one", "-o", "empty/r.html")
    assert "permission denied" in ended.err


def test_a_page_that_cannot_be_written_leaves_the_old_one(
    desk: Path, headcount: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    headcount("report", "one")
    before = (desk / "report.html").read_bytes()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("headcount.records.files.write_all", full)
    ended = headcount("report", "nan")
    assert ended.code == 1
    assert "the disk is full" in ended.err
    assert (desk / "report.html").read_bytes() == before


# --- a model is measured first --------------------------------------------------------------------


def test_a_story_from_nothing_then_from_the_run(
    desk: Path, headcount: Command, saved: Saved
) -> None:
    words = ("report", saved("bert"), "--text", "s.txt", "--json")
    first = headcount(*words)
    assert first.code == 0, first.err
    found = json.loads(first.out)
    assert found["run"] == "run-bert"
    assert found["own_text"]
    states = {one["name"]: one["state"] for one in found["stages"]}
    assert states["survey"] == states["exhibits"] == "done"
    assert states["curve"] == "left out"
    assert found["missing"] == []  # the stages say it
    assert "✓ Where every head looks" in first.err
    assert first.err.count("predicts no words") == 1
    again = json.loads(headcount(*words).out)
    assert {one["state"] for one in again["stages"]} == {"kept", "left out"}


def test_without_exhibits_no_sentence_is_in_the_page(
    desk: Path, headcount: Command, saved: Saved
) -> None:
    model = saved("bert")
    with_texts = headcount("report", model, "--text", "s.txt")
    assert "The page contains sentences of your texts" in with_texts.out
    assert "ferry" in (desk / "report.html").read_text(encoding="utf8")
    ended = headcount("report", "run-bert", "--page", "no-exhibits")
    assert "your texts" not in ended.out
    assert "ferry" not in (desk / "report.html").read_text(encoding="utf8")


def test_a_run_of_another_model_is_refused_unless_it_goes(
    desk: Path, headcount: Command, saved: Saved
) -> None:
    _write(desk / "other", {"confidence": np.linspace(0, 1, 8)})
    gpt = saved("gpt2")
    words = ("report", gpt, "--text", "s.txt", "--run", "other", "--page", "no-exhibits")
    refused = headcount(*words)
    assert refused.code == 1
    assert "choose another folder" in refused.err
    ended = headcount(*words, "--replace", "--limit", "4", "--json")
    assert ended.code == 0, ended.err
    assert "gradient" in json.loads(ended.out)["columns"]


def test_the_command_is_one_call_in_python(desk: Path, headcount: Command, saved: Saved) -> None:
    model = saved("gpt2")
    words = ("report", model, "--text", "s.txt", "--task", "lm:s.txt", "--run", "by-command")
    ended = headcount(*words, "--limit", "4", "--json")
    assert ended.code == 0, ended.err
    states = {one["name"]: one["state"] for one in json.loads(ended.out)["stages"]}
    assert states["score-ablation"] == states["curve"] == "done"

    page = hc.story(
        model,
        "run",
        "page.html",
        text="s.txt",
        task=hc.tasks.lm("s.txt"),
        measuring=hc.StoryOptions(limit=4),
    )
    assert {one.name: one.state for one in page.stages} == states
    files = {path.name for path in desk.glob("run/*.parquet")}
    assert {path.name for path in desk.glob("by-command/*.parquet")} == files
    for name in files - {"bench.parquet"}:  # times are measured anew
        ours, theirs = (pd.read_parquet(desk / run / name) for run in ("run", "by-command"))
        pd.testing.assert_frame_equal(ours, theirs)
