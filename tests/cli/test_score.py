"""`headcount score`: a model on a task, whole and with heads shut."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from headcount import tasks
from headcount.bundle import sample
from headcount.models.load import load
from headcount.wiring import valve

Saved = Callable[[str], Path]

SPEC = "translation:sample,metric=loss"


def test_the_metric_with_its_interval(headcount: Callable) -> None:
    ended = headcount("score", "translator", "--task", SPEC, "--limit", 12)
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.startswith("loss 1.")
    assert ended.out.splitlines()[0].endswith("] over 12 examples")


def test_json_equals_python_and_shut_heads_are_tested(headcount: Callable) -> None:
    line = ["score", "translator", "--task", SPEC, "--limit", 12, "--shut", "enc.0.7,cross.5.1"]
    told = json.loads(headcount(*line, "--json").out)
    translator = load("translator", device="cpu")
    task = tasks.translation(sample.pairs()[:12], metric="loss")
    whole = task.evaluate(translator)
    with valve(translator, {"enc.0.7": 0.0, "cross.5.1": 0.0}):
        without = task.evaluate(translator)
    assert told["value"] == pytest.approx(whole.value, rel=1e-5)
    assert told["without"]["shut"] == ["enc.0.7", "cross.5.1"]
    assert told["without"]["value"] == pytest.approx(float(without.value), rel=1e-5)
    loss = without.against(whole)
    assert told["without"]["difference"]["value"] == pytest.approx(float(loss.value), rel=1e-3)
    assert told["without"]["difference"]["p"] == pytest.approx(float(loss.p), rel=1e-2)
    assert told["low"] < told["value"] < told["high"]
    printed = headcount(*line).out
    assert "without enc.0.7, cross.5.1: " in printed
    assert "(sign-flip)" in " ".join(printed.split())


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ([], 2, "Neither --task nor --task-file was given"),
        (["--task", "translaton:sample"], 2, "closest: translation"),
        (["--task", "translation:nowhere.tsv"], 1, "There is no file nowhere.tsv"),
        (["--task", SPEC, "--shut", "enc.9.9"], 2, "There is no head enc.9.9"),
        (["--task", SPEC, "--shut", "first"], 2, "'first' is not a head's name"),
        (["--task", "classification:sample"], 1, "sample"),
    ],
)
def test_mistakes_are_told(headcount: Callable, words: list[str], code: int, message: str) -> None:
    ended = headcount("score", "translator", *words)
    assert (ended.code, ended.out) == (code, "")
    assert message in ended.err
    assert "Traceback" not in ended.err


def test_a_model_of_the_wrong_kind_is_refused(headcount: Callable, saved: Saved) -> None:
    ended = headcount("score", saved("bert"), "--task", SPEC)
    assert ended.code == 1
    assert "translation needs an encoder-decoder" in ended.err


def test_too_few_examples_for_a_test_lose_no_score(headcount: Callable) -> None:
    line = ["score", "translator", "--task", SPEC, "--limit", 3, "--shut", "enc.0.7"]
    ended = headcount(*line)
    assert ended.code == 0
    assert " without enc.0.7: " in ended.out
    assert "The difference is not tested." in ended.out
    told = json.loads(headcount(*line, "--json").out)
    assert told["without"]["difference"]["value"] == pytest.approx(
        told["without"]["value"] - told["value"]
    )
    assert told["provenance"]["subject"]["weights_hash"]
    assert told["provenance"]["versions"]["torch"]
    assert told["provenance"]["limit"] == 3
