"""The command as a whole: help that is quick, versions, and how mistakes are told."""

from __future__ import annotations

import ast
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest

from headcount import plugins
from headcount.cli import main
from headcount.errors import HeadcountError, ModelError, RunError, UsageError
from headcount.records.provenance import version

ROOT = Path(__file__).parents[2]
HEAVY = ["torch", "transformers", "pandas", "numpy", "scipy", "pyarrow", "sklearn", "conllu"]
VERBS = ["survey", "show", "ls"]


def fresh(code: str, *words: str) -> subprocess.CompletedProcess[str]:
    """A new Python in which the command runs with these words."""
    env = os.environ | {"PYTHONPATH": str(ROOT / "src"), "COLUMNS": "100"}
    command = [sys.executable, "-c", code, *words]
    return subprocess.run(command, capture_output=True, text=True, env=env)


LOADED = """
import json, sys
from headcount.cli.main import run
try:
    run()
except SystemExit as end:
    print(json.dumps([end.code or 0, sorted({name.split(".")[0] for name in sys.modules})]))
"""


@pytest.mark.parametrize("words", [[], *([verb] for verb in VERBS)], ids=["headcount", *VERBS])
def test_help_loads_nothing_heavy(words: list[str]) -> None:
    done = fresh(LOADED, *words, "--help")
    code, loaded = json.loads(done.stdout.splitlines()[-1])
    assert code == 0, done.stderr
    assert "Usage: headcount" in done.stdout
    assert not set(HEAVY) & set(loaded)


def test_python_m_headcount_is_the_command() -> None:
    done = fresh("import runpy; runpy.run_module('headcount', run_name='__main__')", "--version")
    assert (done.returncode, done.stdout) == (0, f"headcount {version()}\n")


@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_help_names_every_verb(headcount: Callable, flag: str) -> None:
    ended = headcount(flag)
    assert ended.code == 0
    for verb in VERBS:
        assert f" {verb} " in ended.out


@pytest.mark.parametrize(
    ("verb", "flags"),
    [
        (
            "survey",
            "--text --pairs --treebank --out -o --columns --best-heads --control "
            "--limit --device --json",
        ),
        ("show", "--head --target --chat --device --load --json"),
        ("ls", "--json"),
    ],
)
def test_help_of_a_verb_names_its_options_and_gives_examples(
    headcount: Callable, verb: str, flags: str
) -> None:
    ended = headcount(verb, "--help")
    assert ended.code == 0
    assert f"headcount {verb} minilm" in ended.out
    for flag in flags.split():
        assert f" {flag} " in ended.out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["probee"], "No such command 'probee'. Did you mean 'probe'?"),
        (["survey"], "survey needs MODEL, e.g. headcount survey minilm"),
        (["survey", "minilm", "--txt", "x"], "No such option: --txt"),
        (["survey", "minilm", "--limit", "few"], "Invalid value for '--limit'"),
        (["show", "minilm", "Rain."], "Name one head or one layer"),
    ],
)
def test_wrong_usage_ends_with_2(headcount: Callable, words: list[str], message: str) -> None:
    ended = headcount(*words)
    assert ended.code == 2
    assert message in ended.err
    assert "Traceback" not in ended.err
    assert not ended.out


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (UsageError("A wrong word; use another."), 2, "Error: A wrong word; use another.\n"),
        (ModelError("It [red]is[/red] broken."), 1, "Error: It [red]is[/red] broken.\n"),
        (RunError("No room."), 1, "Error: No room.\n"),
        (HeadcountError("Anything."), 1, "Error: Anything.\n"),
        (KeyboardInterrupt(), 130, "Error: Interrupted; nothing half-written was left behind.\n"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else None,
)
def test_a_mistake_is_one_sentence_and_a_code(
    headcount: Callable,
    monkeypatch: pytest.MonkeyPatch,
    error: BaseException,
    code: int,
    message: str,
) -> None:
    def fail() -> None:
        raise error

    monkeypatch.setattr(import_module("headcount.rooms.listing.command"), "known_models", fail)
    ended = headcount("ls")
    assert (ended.code, ended.err, ended.out) == (code, message, "")


def test_a_fault_of_our_own_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(import_module("headcount.rooms.listing.command"), "known_models", fail)
    with pytest.raises(ZeroDivisionError):
        main.app(["ls"], prog_name="headcount")


@pytest.mark.parametrize("words", [["ls"], ["ls", "--json"]])
def test_a_reader_that_goes_away_is_no_failure(words: list[str]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    env = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(
        [sys.executable, "-m", "headcount", *words], stdout=writer, stderr=subprocess.PIPE, env=env
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows ends such a process in its own way")
def test_ctrl_c_while_python_leaves_is_no_traceback() -> None:
    """Libraries tidy up at exit; what was asked for is done by then."""
    code = (
        "import atexit, os, signal, sys, time; from headcount.cli.main import run; "
        "atexit.register(lambda: (os.kill(os.getpid(), signal.SIGINT), time.sleep(9))); "
        "sys.argv = ['headcount', '--version']; run()"
    )
    env = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, env=env)
    assert (done.returncode, done.stderr) == (-signal.SIGINT, b"")
    assert done.stdout.startswith(b"headcount ")


def test_nobody_is_sent_to_a_flag_that_is_going() -> None:
    """Docs and messages name the options of this release, not those that only warn."""
    verbs = [main._Verbs().get_command(None, name) for name in plugins.names_of("commands")]
    hidden, shown = set[str](), set[str]()
    for option in (one for verb in verbs for one in verb.params):
        (hidden if getattr(option, "hidden", False) else shown).update(option.opts)
    flags = "|".join(
        map(re.escape, hidden - shown - {"--task-file", "--table-format", "--address"})
    )
    old = re.compile(rf"(?<!ray start )(?<![\w-])(?:{flags})(?![\w-])")
    root = Path(__file__).parents[2]
    pages = [root / "README.md", *(root / "docs" / "how-to").glob("*.md")]
    texts = {page: page.read_text("utf8") for page in [*pages, *(root / "docs").glob("*.md")]}
    for module in (root / "src" / "headcount").rglob("*.py"):
        nodes = (one for one in ast.walk(ast.parse(module.read_text("utf8"))))
        said = [one.value for one in nodes if isinstance(one, ast.Constant)]
        texts[module] = "\n".join(one for one in said if isinstance(one, str) and " " in one)
    told = {page.name: old.findall(text) for page, text in texts.items() if old.search(text)}
    assert told == {}
