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
from headcount.cli import main
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
    assert "Warning: --allow-bin is --load allow-bin now; the old flag will" in got["output"]
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


# --- all verbs together -------------------------------------------------------------------------

#: Options of all verbs together, and what a verb's short help shows: both go down, never up.
MOST_OPTIONS, MOST_SHOWN = 150, 15


def verbs() -> dict[str, Any]:
    """Every verb of headcount itself, as typer has it."""
    group: Any = typer.main.get_command(main.app)
    listed = hc.plugins.listed("commands")
    own = [one.name for one in listed if one.origin.split()[0] in ("headcount", "room")]
    return {name: group.get_command(None, name) for name in own}


def options_of(verb: Any) -> list[str]:
    """The options that a verb has: neither --help nor those of an earlier release."""
    found = [one for one in verb.params if one.param_type_name == "option" and not one.hidden]
    return [one.opts[0] for one in found]


def test_all_verbs_together_have_few_options() -> None:
    counts = {name: len(options_of(verb)) for name, verb in verbs().items()}
    assert sum(counts.values()) <= MOST_OPTIONS, counts


@pytest.mark.parametrize("verb", ["survey", "score", "prune", "probe", "report", "compare"])
def test_help_shows_the_options_that_people_turn(headcount: Any, verb: str) -> None:
    short, whole = (headcount(verb, flag).out for flag in ("--help", "--help-all"))
    flags = re.compile(r"^│ (--[a-z-]+)", re.MULTILINE)
    shown, every = set(flags.findall(short)), set(flags.findall(whole))
    assert f"More options: headcount {verb} --help-all" in short
    assert 5 < len(shown - {"--help"}) <= MOST_SHOWN
    assert every >= {*options_of(verbs()[verb])} >= shown - {"--help"}
    assert len(every) > len(shown)


def test_the_first_help_fits_a_screen(headcount: Any) -> None:
    lines = headcount("--help").out.splitlines()
    assert 20 <= len(lines) <= 30
    assert max(map(len, lines)) <= 100
    order = [line.split()[0] for line in lines if line[:2] == "  " and line[2] != "h"]
    assert order[:4] == ["report", "survey", "score", "prune"]
    assert (
        lines.index("  headcount report" + " " * 38 + "the whole story, on a bundled translator")
        < 6
    )


def test_what_an_earlier_release_called_a_flag_works(headcount: Any) -> None:
    told = headcount(
        "survey", "./none", "--text", "sample", "--max-length", 9, "--table-format", "text"
    )
    assert "Warning: --max-length is --reading max-length=9 now; the old flag will" in told.err
    told = headcount("score", "./none", "--task-file", "none.toml")
    assert (
        "Warning: --task-file will be removed in the next release; use --task FILE.toml."
        in told.err
    )
    assert (
        "There is no task file none.toml." in headcount("score", "./no", "--task", "none.toml").err
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["show", "translator", "A.", "--head", "8-11"],
            "the stack is named: enc.7.10, or dec.7.10",
        ),
        (
            ["prune", "./m", "--max-loss", "0.5%"],
            "--max-loss is '0.5%'; it is in points: leave out",
        ),
        (["prune", "./m", "--drop-share", "x"], "--drop-share is 'x'; it must be a number."),
    ],
)
def test_what_people_type_is_answered(headcount: Any, words: list[str], message: str) -> None:
    told = headcount(*words)
    assert (told.code, message in " ".join(told.err.split())) == (2, True), told.err


def test_a_share_may_be_in_percent(headcount: Any) -> None:
    told = headcount("prune", "./none", "--drop-share", "25%", "--dry-run")
    assert "--drop-share needs a task to choose heads by" in told.err
