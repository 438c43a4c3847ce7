"""What runs before a commit, on a host and for a release asks for what the project asks for."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf8"))
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def read(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf8"))


def test_hooks_use_the_ruff_of_the_development_tools() -> None:
    (wanted,) = [one for one in PROJECT["project"]["optional-dependencies"]["dev"] if "ruff" in one]
    (repo,) = read(ROOT / ".pre-commit-config.yaml")["repos"]
    of_ruff = [hook for hook in repo["hooks"] if hook["id"].startswith("ruff")]
    assert [hook["additional_dependencies"] for hook in of_ruff] == [[wanted]] * 2


def test_the_oldest_python_that_is_allowed_is_tested() -> None:
    matrix = read(ROOT / ".github/workflows/ci.yml")["jobs"]["test"]["strategy"]["matrix"]["python"]
    assert PROJECT["project"]["requires-python"] == f">={matrix[0]}"


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_what_a_workflow_makes_is_in_the_makefile(workflow: Path) -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    targets |= {"coverage", "test"}  # with settings of their own, on one line
    steps = [step for job in read(workflow)["jobs"].values() for step in job["steps"]]
    made = [step["run"] for step in steps if step.get("run", "").startswith("make ")]
    assert made
    for run in made:
        named = re.findall(r"make (\w+)", run) or re.findall(r"'(\w+)'", run.split("==")[1])[1:]
        assert set(named) <= targets


def test_the_version_comes_from_the_tag_and_the_changelog_can_take_it() -> None:
    assert "version" in PROJECT["project"]["dynamic"]
    cited = re.search(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    assert cited is not None
    assert cited[1] == PROJECT["tool"]["hatch"]["version"]["fallback-version"]
    assert "## [Unreleased]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf8")
