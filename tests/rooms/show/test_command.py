"""`headcount show`: one head on one sentence, drawn or as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

Saved = Callable[[str], Path]


def test_a_line_for_each_token(headcount: Callable, saved: Saved) -> None:
    ended = headcount("show", saved("bert"), "Rain fell.", "--head", "enc.1.2")
    lines = ended.out.splitlines()
    assert (ended.code, ended.err) == (0, "")
    assert lines[0] == "Head enc.1.2  query rows, key columns"
    assert lines[1].split()[0] == "[CLS]"
    assert lines[-2].split()[0] == "[SEP]"


def test_json_holds_the_whole_map(headcount: Callable, saved: Saved) -> None:
    ended = headcount("show", saved("bert"), "Rain fell.", "--head", "enc.1.2", "--json")
    told = json.loads(ended.out)
    assert told["head"] == "enc.1.2"
    assert told["queries"] == told["keys"]
    assert [len(row) for row in told["weights"]] == [len(told["keys"])] * len(told["queries"])
    assert all(sum(row) == pytest.approx(1, abs=1e-5) for row in told["weights"])


def test_top_says_how_many_keys_are_named(headcount: Callable, saved: Saved) -> None:
    line = ["show", saved("bert"), "Rain fell.", "--head", "enc.1.2", "--top"]
    rows = headcount(*line, 2).out.splitlines()[1:-1]
    assert all(sum(word.startswith("0.") for word in row.split()) == 2 for row in rows)


def test_a_pair_and_a_translation(headcount: Callable, saved: Saved) -> None:
    line = ["show", saved("bert"), "Rain.", "--target", "Snow.", "--head", "enc.0.0", "--json"]
    assert json.loads(headcount(*line).out)["queries"].count("[SEP]") == 2
    line = ["show", saved("marian"), "Rain.", "--target", "Regen.", "--head", "cross.0.0", "--json"]
    told = json.loads(headcount(*line).out)
    assert told["keys"][-1] == "</s>"
    assert told["queries"][0] == "<pad>"
    assert headcount("show", saved("marian"), "Rain.", "--head", "enc.0.0").code == 0


def test_chat(headcount: Callable, saved: Saved) -> None:
    line = ["show", saved("chatty"), "Rain.", "--head", "dec.0.0", "--chat", "--json"]
    assert "<|im_start|>" in json.loads(headcount(*line).out)["queries"]


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (
            ["{bert}", "Rain.", "--head", "enc.9.9"],
            2,
            "There is no head enc.9.9; this model has enc.0.0 to enc.1.3.",
        ),
        (["{bert}", "Rain.", "--head", "first"], 2, "'first' is not a head's name; write stack."),
        (["{bert}", " ", "--head", "enc.0.0"], 2, "The sentence is empty; give one with a word"),
        (
            ["{bert}", "\u200b", "--head", "enc.0.0"],
            1,
            r"The sentence '\u200b' has no token for this tokenizer.",
        ),
        (
            ["{bert}", "rain " * 99, "--head", "enc.0.0"],
            1,
            "The sentence is longer than the 64 tokens that bert takes; shorten it.",
        ),
        (["{bert}", "Rain.", "--head", "enc.0.0", "--top", "0"], 2, "--top is 0; it must be 1"),
        (
            ["{marian}", "Rain.", "--head", "cross.0.0"],
            2,
            "cross.0.0 reads a translation too; give it with --target (target=...).",
        ),
        (["{nan-bert}", "Rain.", "--head", "enc.0.0"], 1, "of nan-bert holds 1 values of 1024"),
        (["{mamba}", "Rain.", "--head", "dec.0.0"], 1, "MambaModel (model type 'mamba') has no"),
        (["{gpt2}", "Rain.", "--head", "dec.0.0", "--chat"], 2, "has no chat template"),
    ],
)
def test_what_cannot_be_shown_is_said_in_a_sentence(
    headcount: Callable, saved: Saved, words: list[str], code: int, message: str
) -> None:
    line = [str(saved(w[1:-1])) if w.startswith("{") else w for w in words]
    ended = headcount("show", *line)
    assert ended.code == code
    assert ended.err.startswith("Error: ")
    assert message in ended.err
    assert ended.err.count("\n") == 1
    assert not ended.out
