"""Bundles of options as flags of a verb."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from inspect import signature
from pathlib import Path
from typing import Annotated, Any

import pytest
import typer
from typer.testing import CliRunner

import headcount as hc
from headcount.cli.options import Json, with_options, without
from headcount.errors import UsageError
from headcount.models import LoadOptions
from headcount.records import WorkOptions, option


@dataclass(frozen=True)
class Cut:
    """Options of a verb of its own."""

    price: float | None = option(None, "X", "What it costs.", "--lambda", panel="Prices")
    deep: bool = option(False, None, "Deeper.")
    tree: bool = option(True, None, "A tree.", "--tree/--no-tree")
    place: Path | None = option(None, "FILE", "Where.", "--out", "-o")
    inner: str = "not an option"


def called(*words: str) -> dict[str, Any]:
    """What a verb gets that takes these bundles."""
    got: dict[str, Any] = {}

    def verb(
        cut: Cut,
        work: WorkOptions,
        load: Annotated[LoadOptions, without("revision", "tokenizer")],
        name: str = "nobody",
        json: Json = False,
    ) -> None:
        """A verb."""
        got.update(cut=cut, work=work, load=load, name=name, json=json)

    app = typer.Typer()
    app.command()(with_options(verb))
    done = CliRunner().invoke(app, list(words), catch_exceptions=True)
    if isinstance(done.exception, UsageError):
        raise done.exception
    return got | {"code": done.exit_code, "output": done.output}


def test_defaults_are_those_of_the_dataclass() -> None:
    got = called()
    assert (got["cut"], got["work"], got["load"]) == (Cut(), WorkOptions(), LoadOptions())
    assert (got["name"], got["json"]) == ("nobody", False)


def test_flags_fill_the_bundles() -> None:
    line = "--lambda 0.5 --deep --no-tree -o x.txt --limit 3 --convention paper --allow-bin --json"
    got = called(*line.split(), "--name", "me")
    assert got["cut"] == Cut(price=0.5, deep=True, tree=False, place=Path("x.txt"))
    assert got["work"] == WorkOptions(convention="paper", limit=3)
    assert got["load"] == LoadOptions(allow_bin=True)
    assert "Warning: --allow-bin is --load allow-bin now; the old flag goes" in got["output"]
    assert (got["name"], got["json"]) == ("me", True)


def test_options_of_a_family_share_a_flag() -> None:
    got = called("--load", "dtype=float32,allow-bin", "--load", "trust-remote-code=no")
    assert got["load"] == LoadOptions(dtype="float32", allow_bin=True, trust_remote_code=False)
    assert got["output"] == ""


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--load alow-bin", "--load has no key 'alow-bin'; did you mean allow-bin?"),
        ("--load dtype", "--load dtype has no value; write dtype=VALUE."),
        ("--load allow-bin=2", "--load allow-bin is '2'; it must be yes or no."),
    ],
)
def test_keys_of_a_family_are_checked(words: str, message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        called(*words.split())


def test_help_has_panels_and_no_option_that_is_left_out() -> None:
    output = called("--help")["output"]
    for shown in ("Prices", "Loading the model", "Running", "--batch-size", "--load"):
        assert shown in output
    assert "trust-remote-code: Run code that comes" in " ".join(output.split())
    for hidden in ("--no-deep", "--revision", "--tokenizer", "--auto-class", "--inner"):
        assert hidden not in output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--limit 0", "--limit is 0; it must be 1 or more."),
        ("--convention mine", "--convention is 'mine'; choose headcount, paper or code."),
    ],
)
def test_values_are_checked_before_the_verb_runs(words: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        called(*words.split())


def test_load_takes_what_the_bundle_has() -> None:
    taken = signature(hc.load).parameters
    assert {one.name: one.default for one in fields(LoadOptions)} == {
        name: one.default for name, one in taken.items() if name != "name"
    }
