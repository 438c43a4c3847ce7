"""The public side is what it was: the façade, the command line, the files of a run, a saved model.

The golden copies in tests/golden are written by scripts/golden.py. More may be offered than they
hold (names, options, files, columns); what they hold stays. Numbers agree to float32 on any CPU.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from scripts_of import script

GOLDEN = Path(__file__).parent / "golden"
make = script("golden")


def golden(name: str) -> Any:
    return json.loads((GOLDEN / f"{name}.json").read_text(encoding="utf8"))


def as_json(value: Any) -> Any:
    return json.loads(json.dumps(value))


# --- how alike two copies must be -----------------------------------------------------------------


@dataclass(frozen=True)
class Tolerance:
    """How far numbers may be apart: by their size, and at all; a sum by the sizes of its parts."""

    relative: float = 1e-4
    absolute: float = 1e-6

    def apart(self, old: float, new: float, size: float = 0.0, n: int = 1) -> bool:
        if old == new:  # also what has no size: "inf"
            return False
        allowed = self.relative * max(abs(old), size) + self.absolute * math.sqrt(n)
        return not math.isclose(old, new, rel_tol=0, abs_tol=allowed)


TABLE = Tolerance()
WEIGHTS = Tolerance(1e-5, 1e-5)
#: A page tells three or four digits, and the last may be rounded either way.
PAGE = Tolerance(1e-3, 1e-3)


def changes(old: Any, new: Any, near: Tolerance = TABLE, where: str = "") -> Iterator[str]:
    """What is gone or changed; what was added is no change, except in a list."""
    if isinstance(old, dict) and isinstance(new, dict):
        yield from _changed_parts(old, new, near, where)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for place, (one, other) in enumerate(zip(old, new, strict=True)):
            yield from changes(one, other, near, f"{where}[{place}]")
    elif isinstance(old, float) and type(new) in (int, float):
        if near.apart(old, new):
            yield f"{where}: {old} became {new}"
    elif old != new or isinstance(old, bool) is not isinstance(new, bool):
        yield f"{where}: {_cut(old)} became {_cut(new)}"


def _changed_parts(
    old: dict[str, Any], new: dict[str, Any], near: Tolerance, where: str
) -> Iterator[str]:
    if "begins" in old and old.keys() != new.keys():  # a column in few letters
        yield f"{where}: {_cut(old)} became {_cut(new)}"
        return
    for key, part in old.items():
        if key not in new:
            yield f"{where}/{key} is gone"
        elif key in ("sum", "moment") and "size" in old:
            if near.apart(part, new[key], size=old["size"], n=old["n"]):
                yield f"{where}/{key}: {part} became {new[key]}"
        else:
            yield from changes(part, new[key], near, f"{where}/{key}")


def _cut(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) < 200 else f"{text[:200]}..."


def assert_same(old: Any, new: Any, near: Tolerance = TABLE) -> None:
    found = list(changes(old, as_json(new), near))
    told = "\n".join(found[:40])
    assert not found, f"{len(found)} changes of the public side:\n{told}"


# --- the façade -----------------------------------------------------------------------------------

Parameter = list[Any]


def lost_promises(old: list[Parameter], new: list[Parameter]) -> list[str]:
    """Calls that worked and would no longer: parameters gone or changed, new ones that must be."""
    places = [one for one in new if one[0] in ("p", "pw")]
    wanted = [one for one in old if one[0] in ("p", "pw")]
    lost = [f"{a} became {b}" for a, b in zip(wanted, places, strict=False) if a != b]
    lost += [f"{one} is gone" for one in wanted[len(places) :]]
    for one in old:
        if one[0] in ("w", "*", "**") and one not in new and [*one[:2], make.UNSAID] not in new:
            lost.append(f"{one} is gone")
    names = {one[1] for one in old}
    needed = [one for one in new if one[1] not in names and one[0] in ("p", "pw", "w")]
    return lost + [f"{one} is needed now" for one in needed if one[2] is None]


def facade_changes(old: dict[str, Any], new: dict[str, Any], where: str = "hc") -> Iterator[str]:
    for key, part in old.items():
        here = f"{where}.{key}"
        if key not in new:
            yield f"{here} is gone"
        elif key == "signature" and part and new[key]:
            yield from (f"{where}: {one}" for one in lost_promises(part, new[key]))
        elif isinstance(part, dict) and isinstance(new[key], dict):
            inner = key in ("names", "members", "keys")
            yield from facade_changes(part, new[key], where if inner else here)
        elif part != new[key]:
            yield f"{here}: {part} became {new[key]}"


def test_the_facade_offers_what_it_did() -> None:
    assert not list(facade_changes(golden("facade"), as_json(make.facade())))


SIGNATURE: list[Parameter] = [["pw", "a", None], ["pw", "b", "1"], ["w", "c", "'x'"]]


@pytest.mark.parametrize(
    ("now", "kept"),
    [
        (SIGNATURE, True),
        ([["pw", "a", None], ["pw", "b", "1"], ["pw", "z", "0"], ["w", "c", "'x'"]], True),
        ([*SIGNATURE, ["w", "d", "None"], ["**", "rest", None]], True),
        ([*SIGNATURE, ["w", "d", None]], False),
        ([["pw", "z", None], *SIGNATURE], False),
        ([["pw", "b", "1"], ["pw", "a", None], ["w", "c", "'x'"]], False),
        ([["pw", "a", None], ["pw", "b", "2"], ["w", "c", "'x'"]], False),
        ([["pw", "a", None], ["w", "b", "1"], ["w", "c", "'x'"]], False),
        ([["pw", "a", None], ["pw", "b", "1"]], False),
        ([["p", "a", None], ["pw", "b", "1"], ["w", "c", "'x'"]], False),
    ],
)
def test_a_promise_that_is_lost_is_seen(now: list[Parameter], kept: bool) -> None:
    assert (not lost_promises(SIGNATURE, now)) is kept


# --- the command line -----------------------------------------------------------------------------


def command_changes(
    old: dict[str, Any], new: dict[str, Any], where: str = "headcount"
) -> Iterator[str]:
    yield from _argument_changes(old["arguments"], new["arguments"], where)
    yield from _option_changes(old["options"], new["options"], where)
    for name, part in old["commands"].items():
        if name in new["commands"]:
            yield from command_changes(part, new["commands"][name], f"{where} {name}")
        else:
            yield f"{where} {name} is gone"


def _argument_changes(
    old: list[dict[str, Any]], new: list[dict[str, Any]], where: str
) -> Iterator[str]:
    if new[: len(old)] != old:
        yield f"{where}: the arguments {old} became {new}"
    yield from (f"{where}: {one} is needed now" for one in new[len(old) :] if one["required"])


def _option_changes(old: dict[str, Any], new: dict[str, Any], where: str) -> Iterator[str]:
    for flag, facts in old.items():
        found = new.get(flag, {"flags": []})
        gone = [one for one in facts["flags"] if one not in found["flags"]]
        yield from (f"{where} {one} is gone" for one in gone)
        if flag in new:
            same = {key: found[key] for key in facts} | {"flags": facts["flags"]}
            yield from changes(facts, same, where=f"{where} {flag}")
    added = [flag for flag in new if flag not in old]
    yield from (f"{where} {flag} is needed now" for flag in added if new[flag]["required"])


def test_the_command_line_takes_what_it_did() -> None:
    assert not list(command_changes(golden("commands"), as_json(make.commands())))


VERB = {
    "arguments": [{"takes": "str", "default": None, "required": True}],
    "options": {
        "--out": {"takes": "Path", "default": "x", "required": False, "flags": ["--out", "-o"]}
    },
    "commands": {},
}
OUT = VERB["options"]["--out"]  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("now", "kept"),
    [
        ({}, True),
        ({"options": {"--out": OUT, "--new": OUT}}, True),
        ({"options": {"--out": OUT | {"flags": ["--out", "-o", "--output"]}}}, True),
        ({"options": {"--out": OUT, "--new": OUT | {"required": True}}}, False),
        ({"options": {"--out": OUT | {"flags": ["--out"]}}}, False),
        ({"options": {"--out": OUT | {"default": "y"}}}, False),
        ({"options": {"--out": OUT | {"takes": "str"}}}, False),
        ({"options": {}}, False),
        ({"arguments": []}, False),
    ],
)
def test_an_option_that_is_lost_is_seen(now: dict[str, Any], kept: bool) -> None:
    assert (not list(command_changes(VERB, VERB | now))) is kept


@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_every_verb_has_help(flag: str) -> None:
    verbs = golden("commands")["commands"]
    assert [verb for verb in verbs if make.call([verb, flag]).exit_code] == []


def test_verbs_answer_machines_as_they_did(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert_same(golden("answers"), make.answers())


# --- the verbs of Python --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def measures(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return make.measures(tmp_path_factory.mktemp("measures"))


@pytest.mark.parametrize("part", golden("measures"))
def test_python_measures_what_it_did(measures: Any, part: str) -> None:
    assert_same(golden("measures")[part], measures[part])


def test_a_smaller_model_is_saved_as_it_was(tmp_path: Path) -> None:
    assert_same(golden("pruned"), make.pruned(tmp_path), WEIGHTS)


# --- a run and its page ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return make.judged(tmp_path_factory.mktemp("judged"))


@pytest.mark.parametrize("part", golden("judged"))
def test_a_survey_judges_as_it_did(judged: Any, part: str) -> None:
    assert_same(golden("judged")[part], judged[part], PAGE if part == "page" else TABLE)


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return make.story(tmp_path_factory.mktemp("story"))


@pytest.mark.parametrize("part", golden("story"))
def test_the_story_is_what_it_was(story: Any, part: str) -> None:
    assert_same(golden("story")[part], story[part], PAGE if part == "page" else TABLE)


# --- the comparison itself ------------------------------------------------------------------------

COPY = {
    "name": "enc",
    "count": 3,
    "value": 0.5,
    "cells": [1, None, 2.0],
    "column": make.digest([0.25, -0.25, 0.5]),
}


@pytest.mark.parametrize(
    ("now", "same"),
    [
        ({"more": 1}, True),
        ({"value": 0.50001}, True),
        ({"value": 0.501}, False),
        ({"value": None}, False),
        ({"count": 4}, False),
        ({"name": "dec"}, False),
        ({"cells": [1, None, 2.0, 3]}, False),
        ({"cells": [1, 0, 2.0]}, False),
        ({"column": make.digest([0.25, -0.250001, 0.5])}, True),
        ({"column": make.digest([-0.25, 0.25, 0.5])}, False),
        ({"column": make.digest([0.25, -0.25, None])}, False),
    ],
)
def test_a_change_is_seen(now: dict[str, Any], same: bool) -> None:
    assert (not list(changes(as_json(COPY), as_json(COPY | now)))) is same


def test_what_is_gone_is_seen() -> None:
    assert list(changes({"a": {"b": 1}}, {"a": {}})) == ["/a/b is gone"]
