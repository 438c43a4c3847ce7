"""Folders with packed weights, and the translator that comes with headcount."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from tiny import TINY

from headcount.bundle.packed import pack_weights, unpack_weights
from headcount.errors import ModelError
from headcount.models.load import load


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A tiny Marian with packed weights in place of its own."""
    model = TINY["marian"]()
    model.save_pretrained(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    learned = {name: weight for name, weight in model.named_parameters() if weight.requires_grad}
    save_file(pack_weights(learned), tmp_path / "packed.safetensors")
    return tmp_path


def test_the_weights_are_the_unpacked_ones(folder: Path) -> None:
    subject = load(folder, device="cpu")
    assert type(subject.model).__name__ == "MarianMTModel"
    assert not subject.model.training
    name = "model.encoder.layers.1.self_attn.k_proj.weight"
    original = TINY["marian"]().state_dict()[name]
    loaded = subject.model.state_dict()[name]
    assert torch.equal(loaded, unpack_weights(pack_weights({name: original}))[name])
    assert torch.allclose(loaded, original, atol=0.01)


def test_settings_of_generation_come_along(folder: Path) -> None:
    (folder / "generation_config.json").write_text('{"num_beams": 7, "eos_token_id": 2}')
    assert load(folder, device="cpu").model.generation_config.num_beams == 7


def test_other_classes_and_dtypes_may_be_asked_for(folder: Path) -> None:
    subject = load(folder, device="cpu", auto_class="AutoModel", dtype="bfloat16")
    assert type(subject.model).__name__ == "MarianModel"
    assert subject.dtype == torch.bfloat16


def test_positions_are_computed_and_not_missed(folder: Path) -> None:
    subject = load(folder, device="cpu", auto_class="AutoModel")
    name = "encoder.embed_positions.weight"
    assert torch.equal(subject.model.state_dict()[name], TINY["marian"]().model.state_dict()[name])
    assert subject.notes == ["no tokenizer: there are no tokenizer files beside the model."]


def test_a_file_cut_off_gets_one_sentence(folder: Path) -> None:
    file = folder / "packed.safetensors"
    file.write_bytes(file.read_bytes()[:-9])
    with pytest.raises(ModelError, match=r"packed\.safetensors"):
        load(folder, device="cpu")


def test_the_bundled_translator_has_three_times_48_heads() -> None:
    subject = load("translator", device="cpu")
    assert subject.source == "bundled"
    assert [
        sum(head.stack == stack for head in subject.heads) for stack in ("enc", "dec", "cross")
    ] == [*(48, 48, 48)]
    assert subject.tokenizer is not None
