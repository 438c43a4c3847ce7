"""The pages on how to extend are complete packages: built, installed and used as they stand."""

from __future__ import annotations

import doctest
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
#: A file of a page: its name in backticks, then the next fenced block.
FILE = re.compile(r"^`([\w./]+\.(?:toml|py))`.*?^```\w+\n(.*?)^```", re.DOTALL | re.MULTILINE)
SESSION = re.compile(r"^```shell-session\n\$ headcount (.*?)\n(.*?)^```", re.DOTALL | re.MULTILINE)
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


@pytest.mark.parametrize(
    ("page", "count"),
    [("write-a-role", 2), ("write-a-score", 2), ("write-a-command", 2), ("plug-in", 4)],
)
def test_a_page_is_a_package_that_installs_and_runs(page: str, count: int, tmp_path: Path) -> None:
    pytest.importorskip("setuptools")
    text = (ROOT / "docs" / "how-to" / f"{page}.md").read_text(encoding="utf8")
    files = dict(FILE.findall(text))
    assert len(files) == count
    package, place = tmp_path / "package", tmp_path / "site"
    for name, content in files.items():
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text(content, encoding="utf8")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    pip += ["--no-build-isolation", "--disable-pip-version-check", "--target", str(place)]
    done = subprocess.run([*pip, str(package)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-800:]
    env = os.environ | {"PYTHONPATH": os.pathsep.join([str(place), *sys.path]), "COLUMNS": "160"}
    start = [sys.executable, "-c", "from headcount.cli.main import run; run()"]
    sessions = SESSION.findall(text)
    assert sessions
    for words, shown in sessions:
        ran = subprocess.run(
            [*start, *shlex.split(words)], capture_output=True, text=True, env=env, cwd=tmp_path
        )
        assert ran.returncode == 0, ran.stderr[-800:]
        assert doctest.OutputChecker().check_output(shown, ran.stdout, FLAGS), ran.stdout
