"""The models that are trained again: what is said beforehand, what is refused, what is kept."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
import torch
from transformers import BertConfig, BertForSequenceClassification

import headcount as hc
from research.models.__main__ import HERE, forecast, main, pack_folder


def test_the_time_is_said_before_anything_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wanted = ["minilm-rte-0", "translator-ru", "--time", "--device", "cpu", "--out", str(tmp_path)]
    assert main(wanted) == 0
    said = capsys.readouterr().out
    assert said.startswith(f"2 models to train into {tmp_path}, about ")
    assert "translator-ru: 16,639 steps, " in said
    assert "hours on this CPU" in said
    assert not any(tmp_path.iterdir())


def test_what_is_there_is_left_as_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "minilm-rte-0").mkdir()
    (tmp_path / "minilm-rte-0" / "packed.safetensors").write_bytes(b"kept")
    assert main(["minilm-rte-0", "--out", str(tmp_path), "--device", "cpu"]) == 0
    assert capsys.readouterr().out == f"Every model is in {tmp_path}.\n"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["minilm-rte-7"], "There is no recipe 'minilm-rte-7'; there are minilm-sst2-0, "),
        (["minilm-rte-0", "--data", "nowhere"], "The corpora are needed, and nowhere is no folder"),
    ],
)
def test_a_mistake_is_told_in_a_sentence(
    given: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*given, "--out", str(tmp_path), "--device", "cpu"]) != 0
    assert message in capsys.readouterr().err


def test_every_recipe_has_what_the_forecast_reads_and_names_a_real_one() -> None:
    recipes = tomllib.loads((HERE / "recipes.toml").read_text())
    assert "10 models" in forecast(recipes, "cuda", Path("models"))
    for name, one in recipes.items():
        if "translator" in one:
            assert (HERE.parent / "translator" / one["translator"]).is_file()
        else:
            task, seed = one["glue"]
            assert name == f"minilm-{task}-{seed}"


def test_a_packed_model_is_loaded_like_any_other(tmp_path: Path) -> None:
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=40, hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=32, num_labels=2,
    )  # fmt: skip
    model = BertForSequenceClassification(config).eval()
    model.save_pretrained(tmp_path / "trained")
    pack_folder(tmp_path / "trained", tmp_path / "kept")
    assert not (tmp_path / "kept" / "model.safetensors").exists()
    ids = torch.tensor([[2, 5, 7, 3]])
    kept = hc.load(str(tmp_path / "kept"), device="cpu").model
    with torch.no_grad():
        gap = (kept(input_ids=ids).logits - model(input_ids=ids).logits).abs().max()
    assert gap < 0.01
