"""What came from outside cannot steer a terminal, whichever verb prints it."""

from __future__ import annotations

import json
import logging
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from rich.progress import Progress
from rich.text import Text
from subjects import save

import headcount as hc
from headcount.cli.main import run
from headcount.cli.printing import Terminal
from headcount.errors import printable
from headcount.records import Column, HeadTable, write_bytes

#: Clears the screen, retitles the window, turns text round, hides a line's end.
HOSTILE = "x\x1b[2J\x1b]0;owned\x07\u202egnp.\x9b31m"
#: All that steers: C0 but for line ends, C1, marks of direction, separators of lines.
STEERING = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")


@pytest.fixture
def stranger(tmp_path: Path) -> Path:
    """A run in which every text that is printed comes from somebody hostile."""
    place = tmp_path / f"run{HOSTILE}"
    heads = [hc.Head("enc", 0, 0), hc.Head("enc", 0, 1)]
    column = Column("odd", meaning=HOSTILE, paper=HOSTILE)
    table = HeadTable.of(heads, {"odd": np.ones(2)}, [column], provenance={"corpus": HOSTILE})
    with hc.Run.open(place) as run:
        run.write_table(table)
        curve = {"stacks": [HOSTILE], "by": [HOSTILE], "heads": [2], HOSTILE: [0.5]}
        run.write_frame("curve", pd.DataFrame(curve))
        run.note(HOSTILE)
    record = json.loads((place / "run.json").read_text())
    record["stages"][HOSTILE] = {}
    write_bytes(place / "run.json", json.dumps(record).encode())
    return place


@pytest.mark.parametrize(
    "words",
    [
        ["ls", "RUN"],
        ["ls", "RUN", "--json"],
        ["ls", "RUN", "--table", "curve"],
        ["ls", "RUN", "--table", "curve", "--format", "latex"],
        ["ls", "RUN", "--table", HOSTILE],
        ["ls", "none" + HOSTILE],
        ["ls", "RUN", HOSTILE],
        ["ls", f"--{HOSTILE}"],
        [HOSTILE],
        [f"--{HOSTILE}"],
        ["report", "--run", "RUN", "-o", f"page{HOSTILE}.html"],
    ],
    ids=lambda words: words[0] if words[0].isprintable() else "verb",
)
def test_a_stranger_run_does_not_steer(
    headcount: Callable, stranger: Path, words: list[str]
) -> None:
    ended = headcount(*(stranger if word == "RUN" else word for word in words))
    printed = ended.out + ended.err
    assert printed
    assert STEERING.findall(printed) == []


def test_a_model_and_texts_with_such_names(headcount: Callable, tmp_path: Path) -> None:
    model, text = tmp_path / f"model{HOSTILE}", tmp_path / f"text{HOSTILE}.txt"
    save(model, "bert", "wordpiece")
    text.write_text(f"Rain fell on {HOSTILE}.\nThe old roof.\n", encoding="utf8")
    out = f"run{HOSTILE}"
    for words in (
        ["survey", model, "--text", text, "-o", out],
        ["survey", model, "--text", text, "-o", out, "--json"],
        ["show", model, f"Rain {HOSTILE} fell.", "--head", "enc.0.1"],
        ["survey", model, "--text", f"none{HOSTILE}"],
    ):
        ended = headcount(*words)
        assert STEERING.findall(ended.out + ended.err) == []
    # Files keep the very text.
    assert hc.Run.open(tmp_path / out, create=False).provenance["model"] == model.name
    shutil.rmtree(tmp_path / out)


def test_warnings_and_what_libraries_log(
    headcount: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A verb that loads a model of a file's choice warns of it by its name."""
    model = tmp_path / f"model{HOSTILE}"
    save(model, "bert", "wordpiece")
    config = json.loads((model / "config.json").read_text()) | {"pruned_heads": {"0": [1]}}
    (model / "config.json").write_text(json.dumps(config))
    (tmp_path / "a.txt").write_text("Rain fell.\nThe old roof.\n")
    (tmp_path / "atlas.toml").write_text(
        f"[models]\none = {json.dumps(str(model))}\n[corpora]\na = {{text = 'a.txt'}}\n"
    )
    ended = headcount("atlas", "atlas.toml", "--device", "cpu")
    assert "pruned_heads" in ended.err
    assert STEERING.findall(ended.out + ended.err) == []
    monkeypatch.setattr("headcount.cli.main.app", lambda **_: None)
    factory, hook = logging.getLogRecordFactory(), sys.excepthook
    try:
        run()
        said = logging.getLogger().makeRecord("x", 30, "x", 1, "%s", (HOSTILE,), None)
    finally:
        logging.setLogRecordFactory(factory)
        sys.excepthook = hook
    assert said.getMessage() == printable(HOSTILE)


def test_whatever_rich_draws_is_spelt_out(capsys: pytest.CaptureFixture[str]) -> None:
    terminal = Terminal(force_terminal=True, width=200)
    terminal.print(HOSTILE, Text(HOSTILE))
    with Progress(console=terminal) as bars:
        bars.add_task(HOSTILE, total=1)
    printed = capsys.readouterr().out
    assert printable(HOSTILE) in printed
    drawn = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", printed).replace("\r", "")  # rich's own
    assert "[2J" in drawn  # the stranger's is text, and stayed
    assert STEERING.findall(drawn) == []


def test_what_is_printable_stays() -> None:
    for text in ("Zwei Krähen", "a\u00a0b", "\u200dمی\u200cخواهم", "👩\u200d🚀"):
        assert printable(text) == text
    assert printable("a\udc80") == "a\\udc80"
