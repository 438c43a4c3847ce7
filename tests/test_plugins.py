"""The registry: our rooms and a stranger's package come in by one door; what is broken is named."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import headcount as hc
from headcount import plugins
from headcount.errors import UsageError

START = [sys.executable, "-c", "from headcount.cli.main import run; run()"]

SHY = '''
"""A stranger's package."""
ADDS = {"commands": {"shy": ":greet"}, "names": {"shy": ":greet"}, "exporters": {"paper": ":greet"},
        "verbs": {"x": "."}}

def greet(name: str) -> None:
    """Greet NAME, shyly."""
    from headcount.cli import echo
    echo(f"hello, {name}")
'''


def installed(folder: Path, name: str, source: str, points: str) -> None:
    """A package as pip lays it down: its module, and what its metadata says."""
    (folder / f"{name}.py").write_text(source, encoding="utf8")
    about = folder / f"{name}-1.2.dist-info"
    about.mkdir()
    about.joinpath("METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.2\n", encoding="utf8"
    )
    about.joinpath("entry_points.txt").write_text(points, encoding="utf8")


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """The command line, with the packages of a folder."""
    path = os.pathsep.join([str(folder), *sys.path])
    env = os.environ | {"PYTHONPATH": path, "COLUMNS": "200"}
    return subprocess.run([*START, *words], capture_output=True, text=True, env=env)


def test_a_stranger_comes_in_by_the_same_door(tmp_path: Path) -> None:
    installed(tmp_path, "shy_heads", SHY, "[headcount.rooms]\nshy = shy_heads\n")
    assert "Greet NAME, shyly." in run(tmp_path, "--help").stdout
    assert run(tmp_path, "shy", "you").stdout == "hello, you\n"
    listed = json.loads(run(tmp_path, "plugins", "--json").stdout)
    assert "shy_heads 1.2 adds to 'verbs', which is no group" in listed["faults"][0]
    rows = {(row["group"], row["name"]): row for row in listed["plugins"]}
    assert rows["commands", "shy"]["origin"] == "shy_heads 1.2"
    assert rows["commands", "probe"]["origin"] == "room probing"
    assert rows["exporters", "paper"]["target"] == "shy_heads:greet"
    code = "import headcount as hc; print('shy' in dir(hc), 'shy' in hc.__all__, hc.shy.__module__)"
    env = os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env)
    assert done.stdout == "True True shy_heads\n", done.stderr


def test_one_thing_of_one_group_needs_no_room(tmp_path: Path) -> None:
    installed(tmp_path, "shy_heads", SHY, "[headcount.commands]\nmeek = shy_heads:greet\n")
    assert run(tmp_path, "meek", "you").stdout == "hello, you\n"
    assert "shy_heads 1.2" in run(tmp_path, "plugins", "commands").stdout


def test_a_plugin_that_is_broken_is_named_and_all_else_works(tmp_path: Path) -> None:
    installed(
        tmp_path,
        "broken",
        "import nonesuch_at_all",
        "[headcount.rooms]\nroom = broken\n[headcount.commands]\nshy = broken:greet\n"
        "survey = broken:survey\n",
    )
    help_page = run(tmp_path, "--help")
    assert help_page.returncode == 0
    assert " survey " in help_page.stdout
    assert "shy" not in help_page.stdout
    why = "ModuleNotFoundError: No module named 'nonesuch_at_all'. Mend or uninstall that package"
    spoken = " ".join(help_page.stderr.split())
    assert f"The command 'shy' of broken 1.2 cannot be loaded from broken:greet: {why}" in spoken
    assert f"The room 'room' of broken 1.2 cannot be loaded from broken: {why}" in spoken
    assert "The command 'survey' of broken 1.2 is left out: headcount has one of that" in spoken
    asked = run(tmp_path, "shy", "you")
    assert asked.returncode == 1
    assert "Error: The command 'shy' of broken 1.2 cannot be loaded" in asked.stderr
    assert "Traceback" not in asked.stderr
    works = run(tmp_path, "ls")
    assert works.returncode == 0
    assert works.stderr == ""
    assert "cannot be loaded" in run(tmp_path, "plugins").stdout
    assert "There is no group 'verbs'; choose commands" in run(tmp_path, "plugins", "verbs").stderr


def test_a_notebook_needs_a_decorator_and_a_cell_can_be_run_again() -> None:
    for size in (1, 2):

        @hc.plugins.exporter
        class Paper:
            name = "paper"
            pages = size

    try:
        assert plugins.get("exporters", "paper").pages == 2
        assert plugins.plugin_of("exporters", "paper").origin == "this session"
        assert plugins.every("exporters")["paper"] is Paper
    finally:
        plugins.unplug("exporters", "paper")
    assert "paper" not in plugins.names_of("exporters")


def test_what_is_there_cannot_be_replaced_by_hand() -> None:
    with pytest.raises(UsageError, match="a command 'survey' already, of headcount; give yours"):
        plugins.plug_in("commands", print, "survey")
    with pytest.raises(UsageError, match="no group 'verbs' to add to; there are commands, roles"):
        plugins.plug_in("verbs", print)


@pytest.mark.parametrize("plugin", plugins.listed(), ids=lambda one: f"{one.group}-{one.name}")
def test_everything_of_ours_is_there(plugin: plugins.Plugin) -> None:
    assert plugin.group in plugins.GROUPS
    assert plugin.load() is not None


def test_the_core_works_with_the_rooms_taken_away(tmp_path: Path) -> None:
    core = tmp_path / "headcount"
    source = Path(hc.__file__).parent
    shutil.copytree(source, core, ignore=shutil.ignore_patterns("rooms", "__pycache__"))
    code = "from headcount import plugins; print(plugins.names_of('stages'), plugins.faults())"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=bare(tmp_path),
    )
    assert "'survey', 'gradient', 'ablation'" in done.stdout, done.stderr
    assert "families" not in done.stdout
    start = [*START, "survey", "translator", "--text", "sample", "--limit", "2", "--roles"]
    done = subprocess.run(start, capture_output=True, text=True, cwd=tmp_path, env=bare(tmp_path))
    assert done.returncode == 0, done.stderr
    assert "of 144 heads" in done.stdout
    asked = subprocess.run(
        [*START, "probe", "x"], capture_output=True, text=True, cwd=tmp_path, env=bare(tmp_path)
    )
    assert "No such command 'probe'" in asked.stderr


def bare(folder: Path) -> dict[str, str]:
    """The environment of a Python that finds headcount in a folder and nowhere else."""
    others = [place for place in sys.path if not Path(place, "headcount").is_dir()]
    return os.environ | {"PYTHONPATH": os.pathsep.join([str(folder), *others]), "COLUMNS": "200"}
