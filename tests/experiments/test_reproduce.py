"""`make reproduce`: which parts it runs, how long each takes, that the promised hour is kept."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

import pytest

import experiments.__main__ as reproduce

README = Path(reproduce.RESULTS) / "README.md"


def test_every_part_is_a_command_and_was_timed() -> None:
    told = json.loads((reproduce.RESULTS / "reproduce.json").read_text())["parts"]
    for part in reproduce.PARTS:
        assert find_spec(part.name) is not None
        assert told[part.name]["trial"] == part.trial


def test_what_runs_by_default_fits_an_hour_of_two_cores() -> None:
    told = json.loads((reproduce.RESULTS / "reproduce.json").read_text())
    minutes = [told["parts"][one.name]["core_minutes"] for one in reproduce.PARTS if not one.long]
    assert max(*minutes, sum(minutes) / 2) <= reproduce.clock(told) < 60
    assert reproduce.clock(told, cores=1) == pytest.approx(sum(minutes))
    assert reproduce.clock(told, long=True) > reproduce.clock(told)


def test_the_page_has_the_table_of_the_file() -> None:
    page = README.read_text(encoding="utf8")
    told = json.loads((reproduce.RESULTS / "reproduce.json").read_text())
    assert reproduce.filled(page, told) == page
    told["parts"]["experiments.rules"]["core_minutes"] = 7777.0
    assert "7777" in reproduce.filled(page, told)


def test_seconds_of_a_part_are_those_of_its_core(capsys: pytest.CaptureFixture[str]) -> None:
    code, core = reproduce.run("this.is.no.module")
    assert code == 1
    assert 0 < core < 30
    assert "of a core" in capsys.readouterr().out


def test_without_all_the_long_parts_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []

    def noted(name: str, *_: str) -> tuple[int, float]:
        ran.append(name)
        return int(name == "experiments.rules"), 0.0

    monkeypatch.setattr(reproduce, "run", noted)
    assert reproduce.main(["--jobs", "1"]) == 1  # one failed
    assert ran[-1] == reproduce.LAST
    assert not {part.name for part in reproduce.PARTS if part.long} & set(ran)
    ran.clear()
    reproduce.main(["--all", "--jobs", "1"])
    assert {part.name for part in reproduce.PARTS} < set(ran)
