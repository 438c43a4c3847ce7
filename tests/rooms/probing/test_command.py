"""`headcount probe`: what it prints, keeps and refuses."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from headcount.bundle import sample

Command = Callable  # see conftest.py
Saved = Callable[[str], Path]

BANK = ["--treebank", "sample", "--limit", 20, "--epochs", 1]


@pytest.fixture
def run(headcount: Command, saved: Saved) -> Path:
    """A run directory with a trained probe."""
    ended = headcount("probe", saved("bert"), *BANK, "--words", "own", "-o", "run")
    assert ended.code == 0, ended.err
    assert "attention of all heads, and words" in " ".join(ended.out.split())
    assert "Probe weight" in ended.out
    return Path("run")


def test_train_then_parse_and_explain(headcount: Command, run: Path) -> None:
    text = "The old ferry leaves."
    ended = headcount("probe", run, "--parse", text, "--explain", "the", "ferry")
    assert ended.code == 0, ended.err
    assert "the → ferry: all heads together put it" in ended.out
    told = json.loads(headcount("probe", run, "--parse", text, "--no-tree", "--json").out)
    assert [word["form"] for word in told["parse"]] == ["The", "old", "ferry", "leaves", "."]
    again = json.loads(headcount("probe", run / "probe", "--parse", text, "--json").out)
    assert [word["head"] for word in again["parse"]].count(0) == 1


def test_parse_without_a_model_takes_the_newest_probe_here(headcount: Command, run: Path) -> None:
    other = headcount("probe", run, "--parse", "Rain fell.", "--json")
    run.rename("later")
    ended = headcount("probe", "--parse", "Rain fell.")
    assert ended.code == 0, ended.err
    assert "Parsed with the probe in later/ (words, bert)." in " ".join(ended.out.split())
    told = headcount("probe", "--parse", "Rain fell.", "--json")
    assert json.loads(told.out) == json.loads(other.out)


def test_parse_where_no_probe_lies_trains_one(
    headcount: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    bank = sample.path("sample.conllu").read_text(encoding="utf8").split("\n\n")
    Path("few.conllu").write_text("\n\n".join(bank[:10]) + "\n\n", encoding="utf8")
    monkeypatch.setattr(sample, "path", lambda _: Path("few.conllu"))
    ended = headcount("probe", "--parse", "The cat sat.", "--explain", "The", "cat")
    assert ended.code == 0, ended.err
    assert "There is no trained probe here, so one of the bundled translator" in " ".join(
        ended.out.split()
    )
    assert "The → cat: all heads together" in ended.out


def test_no_model_to_train_on(headcount: Command) -> None:
    ended = headcount("probe", "--treebank", "sample")
    assert ended.code == 2
    assert "No model was given; name one" in ended.err


def test_one_sentence_to_learn_from_and_one_to_test_on(headcount: Command, saved: Saved) -> None:
    rain = "1\tRain\t_\t_\t_\t_\t2\tnsubj\t_\t_\n2\tfell\t_\t_\t_\t_\t0\troot\t_\t_\n\n"
    Path("one.conllu").write_text(rain)
    bank = ["--treebank", "one.conllu", "--test", "one.conllu"]
    ended = headcount("probe", saved("bert"), *bank)
    assert ended.code == 0, ended.err
    assert "Trained on 1 sentence of one.conllu, tested on 1 (" in " ".join(ended.out.split())
    assert "nan" not in ended.out.split("Probe weight")[0]


def test_json_has_results_and_table(headcount: Command, saved: Saved) -> None:
    ended = headcount("probe", saved("gpt2"), *BANK, "--seeds", 2, "--json")
    told = json.loads(ended.out)
    assert [row["seed"] for row in told["results"]] == [0, 1]
    assert told["summary"][0]["seeds"] == 2
    assert "probe_weight" in told["table"]["columns"]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ([], 2, "No --treebank was given to learn from"),
        (["--explain", "a", "b"], 2, "give it with --parse"),
        (["--parse", "Rain fell."], 2, "holds no trained probe"),
        (["--treebank", "none.conllu"], 1, "There is no file none.conllu"),
        (["--treebank", "sample", "--kind", "labels"], 2, "--kind is 'labels'; choose all, att"),
        (["--treebank", "sample", "--words", "v.txt"], 1, "2 numbers on line 1 and 1 on line 2"),
        (["--treebank", "bare.conllu"], 1, "has no trees: no word has a HEAD"),
    ],
)
def test_mistakes(words: list[str], code: int, said: str, headcount: Command, saved: Saved) -> None:
    Path("v.txt").write_text("rain 1 2\nfell 3\n")
    rain = "1\tRain\t_\t_\t_\t_\t_\t_\t_\t_\n\n"
    Path("bare.conllu").write_text(rain + rain.replace("Rain", "Snow"))
    ended = headcount("probe", saved("bert"), *words)
    assert ended.code == code
    assert said in ended.err
    assert "Traceback" not in ended.err
