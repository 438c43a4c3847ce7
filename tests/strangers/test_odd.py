"""Odd conditions: two commands at once, a clock set back, a run moved or cut, odd models."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from strangers.folders import broken_off
from subjects import save, subject_of
from tiny_subjects import classifier

import headcount as hc
from headcount.errors import HeadcountError
from headcount.records import provenance
from headcount.surveys import shards

Command = Callable[..., Any]
TEXTS = "Rain fell.\nShe left.\nTwo crows.\nIt swam.\n"


@pytest.fixture
def line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """A survey of two shards, without its `-o`."""
    (tmp_path / "s.txt").write_text(TEXTS)
    save(tmp_path / "model", "bert", "wordpiece")
    monkeypatch.setattr(shards, "SHARD_ITEMS", 2)
    return ["survey", "model", "--text", "s.txt"]


def test_two_whole_commands_at_once(tmp_path: Path, line: list[Any]) -> None:
    """One writes, the other waits for nobody: it is refused in one sentence, or comes after."""
    words = [sys.executable, "-m", "headcount", *line, "-o", "run"]
    how: dict[str, Any] = {"cwd": tmp_path, "stderr": subprocess.PIPE, "text": True}
    both = [subprocess.Popen(words, stdout=subprocess.DEVNULL, **how) for _ in range(2)]
    said = [one.communicate(timeout=250)[1] for one in both]
    codes = [one.returncode for one in both]
    assert 0 in codes
    for code, told in zip(codes, said, strict=True):
        assert "Traceback" not in told
        assert code == 0 or (code == 1 and "is being written by process" in told)
    assert len(hc.Run.open(tmp_path / "run", create=False).read_table()) > 0


def test_a_clock_set_back(
    headcount: Command, line: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    broken_off(headcount, [*line, "-o", "run"])
    monkeypatch.setattr("headcount.records.run.now", lambda: "1970-01-01T00:00:00Z")
    monkeypatch.setattr(time, "time", lambda: 0.0)
    os.utime("run/run.json", (0, 0)) if Path("run/run.json").exists() else None
    assert headcount(*line, "-o", "run").code == 0
    assert "survey" in hc.Run.open("run", create=False).stages
    assert provenance.now() > "2000"


@pytest.mark.parametrize("whole", [False, True])
def test_a_run_that_was_moved(whole: bool, headcount: Command, line: list[Any]) -> None:
    if whole:
        assert headcount(*line, "-o", "run").code == 0
    else:
        broken_off(headcount, [*line, "-o", "run"])
    Path("elsewhere").mkdir()
    shutil.move("run", "elsewhere/moved")
    assert headcount(*line, "-o", "elsewhere/moved").code == 0
    assert headcount(*line, "-o", "fresh").code == 0
    one, two = (hc.Run.open(at, create=False).read_table() for at in ("elsewhere/moved", "fresh"))
    assert one.frame.equals(two.frame)


def test_a_run_that_was_copied_half(headcount: Command, line: list[Any]) -> None:
    """Every file left out in turn: the same command ends well, or says in a sentence why not."""
    broken_off(headcount, [*line, "-o", "run"])
    assert headcount(*line, "-o", "whole").code == 0
    for source in ("run", "whole"):
        files = [path for path in Path(source).rglob("*") if path.is_file()]
        assert files
        for left_out in files:
            shutil.rmtree("half", ignore_errors=True)
            shutil.copytree(source, "half")
            (Path("half") / left_out.relative_to(source)).unlink()
            ended = headcount(*line, "-o", "half")
            assert ended.code in (0, 1), left_out
            assert ended.code == 0 or ended.err.count("\n") == 1, (left_out, ended.err)


def or_sentence(make: Callable[[], hc.HeadTable]) -> hc.HeadTable | str:
    try:
        return make()
    except HeadcountError as error:
        return str(error)


def survey_or_sentence(subject: hc.Subject, text: list[str]) -> hc.HeadTable | str:
    return or_sentence(lambda: hc.survey(subject, text, columns=["entropy", "confidence"]))


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_weights_that_are_no_numbers_are_refused(value: float) -> None:
    subject = subject_of("bert", "wordpiece")
    with torch.no_grad():
        for name, weight in subject.model.named_parameters():
            if "query.weight" in name:
                weight[0, 0] = value
    found = survey_or_sentence(subject, ["Rain fell."])
    assert isinstance(found, str)
    assert "NaN or infinite" in found


def test_float16_that_overflows_on_a_cpu() -> None:
    """Scores beyond 65504 are infinite in float16: refused, or finite figures, never NaN."""
    subject = subject_of("bert", "wordpiece")
    with torch.no_grad():
        for name, weight in subject.model.named_parameters():
            if "query.weight" in name or "key.weight" in name:
                weight.mul_(30_000.0)
    subject.model.to(torch.float16)
    found = survey_or_sentence(subject, ["Rain fell on the roof."])
    if not isinstance(found, str):
        table = found.frame
        assert table.notna().all().all() or found.notes


@pytest.mark.parametrize("sizes", [{"num_hidden_layers": 1}, {"num_attention_heads": 1}])
def test_models_of_one_layer_and_of_one_head(sizes: dict[str, int]) -> None:
    subject = subject_of("bert", "wordpiece", **sizes)
    found = hc.survey(subject, ["Rain fell.", "She left."], roles=True)
    assert len(found) == len(subject.heads)
    assert found.frame["entropy"].notna().all()


@pytest.mark.parametrize("text", ["a", "Rain"])
def test_a_corpus_of_one_token(text: str) -> None:
    for family, tokenizer in (("bert", "wordpiece"), ("gpt2", "gpt2")):
        found = survey_or_sentence(subject_of(family, tokenizer), [text])
        assert isinstance(found, str) or len(found) == len(subject_of(family, tokenizer).heads)


SCORES = "ablation,gradient,relevance"
ROWS = [("Rain fell.", 0), ("She left.", 1), ("Two crows.", 0), ("It swam.", 1)]


@pytest.mark.parametrize("by", SCORES.split(","))
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_no_score_of_weights_that_are_no_numbers(value: float, by: str) -> None:
    subject = classifier()
    with torch.no_grad():
        next(p for n, p in subject.model.named_parameters() if "value.weight" in n)[0, 0] = value
    with pytest.raises(HeadcountError, match="NaN or infinite"):
        hc.score(subject, hc.tasks.classification(ROWS), by=by)


@pytest.mark.parametrize("by", SCORES.split(","))
def test_no_score_of_float16_that_overflows(by: str) -> None:
    """Refused, or figures: never NaN without a word."""
    subject = classifier()
    with torch.no_grad():
        for name, weight in subject.model.named_parameters():
            if "value.weight" in name or "output.dense.weight" in name:
                weight.mul_(30_000.0)
    subject.model.to(torch.float16)
    found = or_sentence(lambda: hc.score(subject, hc.tasks.classification(ROWS), by=by))
    assert "float16" in found if isinstance(found, str) else found.frame[by].notna().all()


@pytest.mark.parametrize("sizes", [{"num_hidden_layers": 1}, {"num_attention_heads": 1}])
def test_scores_of_one_layer_and_of_one_head(sizes: dict[str, int]) -> None:
    subject = classifier(**sizes)
    found = hc.score(subject, hc.tasks.classification(ROWS), by=SCORES)
    assert len(found) == len(subject.heads)
    assert found.frame[SCORES.split(",")].notna().all().all()


def test_a_task_of_one_token() -> None:
    """Figures, or a sentence where nothing is left to predict: never NaN without a word."""
    assert len(hc.score(classifier(), hc.tasks.classification([("a", 0)]), by="gradient"))
    for by in ("gradient", "ablation"):
        model = subject_of("gpt2", "gpt2")
        found = or_sentence(lambda by=by, model=model: hc.score(model, hc.tasks.lm(["a"]), by=by))
        assert "\n" not in found if isinstance(found, str) else found.frame[by].notna().all()
