from __future__ import annotations

import getpass
import importlib.metadata
import re
import socket
import subprocess
import sys

import pytest

from headcount.records import provenance


def test_versions_are_those_of_what_is_installed() -> None:
    found = provenance.versions()
    assert found["torch"] == importlib.metadata.version("torch")
    assert found["transformers"] == importlib.metadata.version("transformers")
    assert found["tokenizers"] == importlib.metadata.version("tokenizers")
    assert re.match(r"\d+\.\d+", found["headcount"] or "")


def test_versions_import_no_library() -> None:
    code = (
        "import sys; from headcount.records import provenance; provenance.collect(); "
        "print({'torch', 'transformers', 'pandas'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "set()\n", done.stderr


def test_a_package_that_is_not_there_has_no_version() -> None:
    assert provenance._version_of("no-such-package-anywhere") is None


def test_the_platform_names_neither_machine_nor_user() -> None:
    name = provenance.platform_name()
    assert re.fullmatch(r"\w+ \w+", name)
    assert socket.gethostname() not in name
    assert getpass.getuser() not in name


@pytest.mark.parametrize(
    ("arguments", "command"),
    [
        (["/x/alice/bin/headcount", "survey", "a b"], "headcount survey 'a b'"),
        (["/x/alice/headcount/__main__.py", "ls"], "python -m headcount ls"),
        (["/x/ipykernel_launcher.py", "-f", "/x/alice/kernel-1.json"], "notebook"),
        (["-c"], "-c"),
        ([""], "python"),
        ([], "python"),
    ],
)
def test_the_command_holds_what_was_typed_and_no_other_path(
    arguments: list[str], command: str
) -> None:
    assert provenance.command_line(arguments) == command


def test_collect_adds_the_facts_to_what_is_always_known() -> None:
    found = provenance.collect(model="m", seed=3)
    assert found["model"] == "m"
    assert found["seed"] == 3
    assert {"versions", "platform", "command", "time"} < found.keys()
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", found["time"])


def test_hash_of_strings_sees_order_and_boundaries() -> None:
    texts = [["ab", "c"], ["a", "bc"], ["c", "ab"], ["ab", "c", ""], ["abc"], []]
    assert len({provenance.hash_strings(strings) for strings in texts}) == len(texts)
    assert provenance.hash_strings(iter(["ab", "c"])) == provenance.hash_strings(["ab", "c"])


def test_hash_of_strings_takes_any_string() -> None:
    assert provenance.hash_strings(["\ud800"]) != provenance.hash_strings(["\ud801"])
