"""`headcount bench`: two models timed, and one model cut for the clock."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from subjects import save
from typer.testing import CliRunner

from headcount.cli.main import app
from headcount.models.loading import load
from headcount.pruning.remove import prune
from headcount.records.heads import Head
from headcount.rooms.bench.speed import even_heads

QUICK = ["--batches", "1,2", "--lengths", "4", "--pairs", "6", "--device", "cpu"]


def bench(*words: str) -> tuple[int, str, str]:
    found = CliRunner().invoke(app, ["bench", *words])
    return found.exit_code, found.stdout, found.stderr


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """A tiny model on the disk, and the same without two heads."""
    root = tmp_path_factory.mktemp("bench")
    whole = save(root / "whole", "bert", "wordpiece")
    prune(load(str(whole), device="cpu"), "enc.0.1,enc.1.0").save(root / "small")
    return str(whole), str(root / "small")


def test_two_models_are_compared(folders: tuple[str, str]) -> None:
    code, out, _ = bench(*folders, *QUICK)
    assert code == 0
    assert "heads                                  8               6  -25.0%" in out
    assert "Where the time goes, batch 2, 4 tokens" in out
    assert "6 pairs in turn" in out


def test_strangers_are_not_compared(folders: tuple[str, str], tmp_path: Path) -> None:
    code, _, told = bench(folders[1], folders[0], *QUICK)
    assert code == 2
    assert "name the whole model first, then the same model pruned." in " ".join(told.split())
    other = save(tmp_path / "other", "gpt2")
    code, _, told = bench(folders[0], str(other), *QUICK)
    assert (
        code,
        "other (gpt2, 8 heads) is not whole (bert, 8 heads)" in " ".join(told.split()),
    ) == (
        2,
        True,
    )
    code, _, told = bench(folders[0], folders[0], *QUICK)
    assert "has all 8 heads of whole: nothing was removed" in " ".join(told.split())


def test_json_has_every_cell(folders: tuple[str, str]) -> None:
    code, out, _ = bench(*folders, *QUICK, "--json")
    assert code == 0
    report = json.loads(out)
    assert [(cell["batch"], cell["length"]) for cell in report["speeds"]] == [(1, 4), (2, 4)]
    assert report["heads"] == [8, 6]


def test_one_model_loses_a_share_of_every_layer(folders: tuple[str, str]) -> None:
    subject = load(folders[0], device="cpu")
    assert even_heads(subject, 0.5) == [Head("enc", n, i) for n in (0, 1) for i in (2, 3)]
    code, out, _ = bench(folders[0], *QUICK, "--share", "0.5")
    assert code == 0
    assert "heads                                  8               4  -50.0%" in out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--batches", "1,x"], "--timing batches is '1,x'; give whole numbers of 1 or more"),
        (["--lengths", "0"], "--timing lengths is '0'; give whole numbers of 1 or more"),
        (["--share", "1.5"], "The share of heads is 1.5; give a number between 0 and 1."),
        (["--way", "fast"], "There is no way 'fast' to run a forward; choose plain, graph"),
        (["--pairs", "2"], "2 pairs give no interval; take 6 or more."),
        (["other", "--share", "0.3"], "--share replaces the PRUNED model; give one of the two"),
    ],
)
def test_mistakes_are_told_in_a_sentence(
    folders: tuple[str, str], words: list[str], sentence: str
) -> None:
    code, _, err = bench(folders[0], "--device", "cpu", *words)
    assert code == 2
    assert sentence in " ".join(err.split())


def test_too_few_pairs_are_refused_before_a_model_is_looked_for() -> None:
    code, _, err = bench("no-such-model", "--pairs", "2")
    assert code == 2
    assert "2 pairs give no interval; take 6 or more." in " ".join(err.split())


def test_without_a_model_there_is_a_sentence() -> None:
    code, _, err = bench()
    assert code == 2
    assert "name one: headcount bench MODEL" in " ".join(err.split())
