"""The command line without a process of its own: quick, and its errors are seen whole."""

from __future__ import annotations

import io
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from headcount.cli.main import app

#: A saved model by a word: its family and its tokenizer.
MODELS = {
    "bert": ("bert", "wordpiece"),
    "gpt2": ("gpt2", "gpt2"),
    "chatty": ("llama", "chatty"),
    "marian": ("marian", "marian"),
    "mamba": ("mamba", "gpt2"),
    "clip": ("clip", None),
}


@dataclass
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str


Command = Callable[..., Ended]


@pytest.fixture
def headcount(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Command:
    """Run `headcount` with these words, in an empty folder and a terminal of 100 columns."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    # On a busy machine a short command may last until it would be heard of.
    monkeypatch.setattr("headcount.cli.printing._SILENCE", math.inf)

    def call(*words: object, stdin: str = "") -> Ended:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        monkeypatch.setattr(sys, "argv", ["headcount", *map(str, words)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            app(prog_name="headcount")
        printed = capsys.readouterr()
        return Ended(int(ended.value.code or 0), printed.out, printed.err)

    return call


@pytest.fixture(scope="session")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder of a saved tiny model: a word of `MODELS`, or `nan-` and a family's name."""

    from subjects import save

    @cache
    def folder(name: str) -> Path:
        place = tmp_path_factory.mktemp("models") / name
        if not name.startswith("nan-"):
            return save(place, *MODELS[name])
        return _broken(place, name.removeprefix("nan-"))

    return folder


def _broken(place: Path, family: str) -> Path:
    """A model with one weight of its first layer that is not a number."""
    import torch
    from subjects import subject_of

    tokenizer = "wordpiece" if family in ("bert", "deberta") else "gpt2"
    subject = subject_of(family, tokenizer)
    with torch.no_grad():
        matrices = [w for n, w in subject.model.named_parameters() if ".0." in n and w.dim() == 2]
        matrices[0][0, 0] = float("nan")
    subject.model.save_pretrained(place)
    subject.tokenizer.save_pretrained(place)  # type: ignore[union-attr]
    return place
