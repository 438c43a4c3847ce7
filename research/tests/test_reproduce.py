"""`make reproduce`: which parts it runs, how long each takes, that the promised hour is kept."""

from __future__ import annotations

import json
import shutil
import time
from importlib.util import find_spec
from pathlib import Path

import pytest

import research.__main__ as reproduce
from research import DOCS

README = DOCS / "README.md"


def test_every_part_is_a_command_and_was_timed() -> None:
    told = json.loads((reproduce.RESULTS / "reproduce.json").read_text())["parts"]
    for part in reproduce.PARTS:
        assert find_spec(part.module) is not None
        assert told[part.name]["trial"] == part.trial


def test_what_runs_by_default_fits_an_hour_of_two_cores() -> None:
    told = json.loads((reproduce.RESULTS / "reproduce.json").read_text())
    minutes = [told["parts"][one.name]["core_minutes"] for one in reproduce.PARTS if not one.long]
    assert max(*minutes, sum(minutes) / 2) <= reproduce.clock(told) < 60
    assert reproduce.clock(told, cores=1) == pytest.approx(sum(minutes))
    assert reproduce.clock(told, long=True) > reproduce.clock(told)


def test_a_whole_run_was_measured_and_kept_the_hour() -> None:
    whole = json.loads((reproduce.RESULTS / "reproduce.json").read_text())["whole"]
    cores = whole["core_minutes"]
    assert {part.name for part in reproduce.PARTS if not part.long} <= set(cores)
    # No core does more than a minute's work in a minute.
    assert max(max(cores.values()), sum(cores.values()) / whole["jobs"]) <= whole["clock_minutes"]
    assert whole["clock_minutes"] < 60


def test_the_page_has_the_table_of_the_file() -> None:
    page = README.read_text(encoding="utf8")
    told = json.loads((reproduce.RESULTS / "reproduce.json").read_text())
    assert reproduce.filled(page, told) == page
    told["parts"]["research.rules"]["core_minutes"] = 7777.0
    told["whole"]["core_minutes"]["research.rules"] = 555.5
    assert "| 555.5 | 7777 |" in reproduce.filled(page, told)


def test_seconds_of_a_part_are_those_of_its_core(capsys: pytest.CaptureFixture[str]) -> None:
    code, core = reproduce.run("this.is.no.module")
    assert code == 1
    assert 0 < core < 30
    assert "of a core" in capsys.readouterr().out


def test_without_all_the_long_parts_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []

    def noted(name: str, *_: str) -> tuple[int, float]:
        ran.append(name)
        return int(name == "research.rules"), 0.0

    monkeypatch.setattr(reproduce, "run", noted)
    assert reproduce.main(["--jobs", "1"]) == 1  # one failed
    assert ran[-1] == reproduce.LAST
    assert not {part.name for part in reproduce.PARTS if part.long} & set(ran)
    ran.clear()
    reproduce.main(["--all", "--jobs", "1"])
    assert {part.name for part in reproduce.PARTS} < set(ran)


def test_parts_are_listed_with_their_minutes_and_can_be_skipped(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ran: list[str] = []
    monkeypatch.setattr(reproduce, "run", lambda name: (ran.append(name), (0, 0.0))[1])
    monkeypatch.setattr(reproduce, "tell", lambda told: pytest.fail("minutes of a part of it"))
    assert reproduce.main(["--all", "--list"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert len(said) == len(reproduce.PARTS)
    assert all(" minutes of a core" in line for line in said)
    assert not any("nobody knows" in line for line in said)
    assert not ran
    skipped = ["research.roles", "research.together families"]
    assert reproduce.main(["--all", "--jobs", "2", "--skip", *skipped]) == 0
    assert {part.name for part in reproduce.PARTS} - set(ran) == set(skipped)
    with pytest.raises(SystemExit):
        reproduce.main(["--skip", "research.nothing"])
    assert "there is no part 'research.nothing'" in capsys.readouterr().err


def test_a_part_waits_for_what_it_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[str] = []

    def slow(name: str) -> tuple[int, float]:
        time.sleep(0.2 if name.startswith("research.importance") else 0.0)
        ended.append(name)
        return 0, 0.0

    monkeypatch.setattr(reproduce, "run", slow)
    monkeypatch.setattr(reproduce, "tell", lambda told: None)
    reproduce.main(["--all", "--jobs", "8"])
    for part in reproduce.PARTS:
        for other in part.after:
            assert ended.index(other) < ended.index(part.name)
    names = [part.name for part in reproduce.PARTS]
    assert all(o in names[: names.index(p.name)] for p in reproduce.PARTS for o in p.after)
    assert any(part.after for part in reproduce.PARTS)


def test_a_run_writes_its_minutes_unless_it_failed_or_was_begun_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for file in (reproduce.RESULTS / "reproduce.json", README):
        shutil.copy(file, tmp_path)
    old = (tmp_path / "reproduce.json").read_text()
    monkeypatch.setattr(reproduce, "RESULTS", tmp_path)
    monkeypatch.setattr(reproduce, "WORK", (tmp_path / "roles", tmp_path / "importance"))
    monkeypatch.setattr(reproduce, "run", lambda name: (int(name == "research.rules"), 90.0))
    assert reproduce.main(["--jobs", "1"]) == 1
    assert (tmp_path / "reproduce.json").read_text() == old
    monkeypatch.setattr(reproduce, "run", lambda name: (0, 90.0))
    (tmp_path / "roles").mkdir()
    (tmp_path / "roles" / "e5-ewt.json").touch()
    assert reproduce.main(["--jobs", "1"]) == 0
    assert "held work from before" in capsys.readouterr().out
    assert (tmp_path / "reproduce.json").read_text() == old
    (tmp_path / "roles" / "e5-ewt.json").unlink()
    assert reproduce.main(["--jobs", "3"]) == 0
    told = json.loads((tmp_path / "reproduce.json").read_text())
    assert told["parts"] == json.loads(old)["parts"]
    assert told["whole"]["jobs"] == 3
    assert set(told["whole"]["core_minutes"].values()) == {1.5}
    assert reproduce.LAST in told["whole"]["core_minutes"]
    assert "3 parts at a time" in (tmp_path / "README.md").read_text()
