"""Adapters: loaded on the base they name."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny import TINY, tiny_inputs
from tiny_tokenizers import llama as llama_tokenizer

from headcount.errors import ModelError
from headcount.models.load import load

peft = pytest.importorskip("peft")


@pytest.fixture
def lora(tmp_path: Path) -> tuple[Path, Any]:
    """A saved base, an adapter beside it that changes the answers, and the live pair."""
    base = TINY["llama"]()
    base.save_pretrained(tmp_path / "base")
    settings = peft.LoraConfig(
        target_modules=["q_proj", "v_proj"],
        task_type="CAUSAL_LM",
        base_model_name_or_path=str(tmp_path / "base"),
        init_lora_weights=False,
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        wrapped = peft.PeftModelForCausalLM(base, settings).eval()
    wrapped.save_pretrained(tmp_path / "lora")
    return tmp_path / "lora", wrapped


def edit(folder: Path, **changes: Any) -> None:
    file = folder / "adapter_config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))


def test_an_adapter_answers_as_it_was_trained(lora: tuple[Path, Any]) -> None:
    folder, wrapped = lora
    subject = load(folder, device="cpu")
    inputs = tiny_inputs(subject.inner)
    with torch.no_grad():
        assert torch.equal(subject.model(**inputs).logits, wrapped(**inputs).logits)
        with wrapped.disable_adapter():
            assert not torch.equal(subject.model(**inputs).logits, wrapped(**inputs).logits)
    assert not subject.model.training
    assert subject.name == "lora"
    assert subject.notes[0] == f"an adapter on {folder.parent / 'base'}"
    assert len(subject.heads) == 8


def test_the_base_may_lie_beside_the_adapter(lora: tuple[Path, Any]) -> None:
    folder, _ = lora
    edit(folder, base_model_name_or_path="../base")
    assert type(load(folder, device="cpu").inner).__name__ == "LlamaForCausalLM"


def test_the_adapters_own_tokenizer_goes_first(lora: tuple[Path, Any]) -> None:
    folder, _ = lora
    llama_tokenizer().save_pretrained(folder)
    with pytest.warns(UserWarning, match="the model embeds 96"):
        subject = load(folder, device="cpu")
    assert subject.tokenizer is not None


def test_without_peft_one_sentence_says_so(
    lora: tuple[Path, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "peft", None)
    with pytest.raises(ModelError, match=r"'lora' is an adapter .* run `pip install peft`\."):
        load(lora[0], device="cpu")


def test_a_base_that_is_gone_is_named(lora: tuple[Path, Any]) -> None:
    edit(lora[0], base_model_name_or_path="/no/such/base")
    with pytest.raises(ModelError, match="There is no folder or file '/no/such/base'"):
        load(lora[0], device="cpu")
    edit(lora[0], base_model_name_or_path=None)
    with pytest.raises(ModelError, match=r"of 'lora' names no base model; add base_model_name_or"):
        load(lora[0], device="cpu")


def test_a_pickled_adapter_is_refused_until_it_is_allowed(lora: tuple[Path, Any]) -> None:
    folder, wrapped = lora
    (folder / "adapter_model.safetensors").unlink()
    torch.save(peft.get_peft_model_state_dict(wrapped), folder / "adapter_model.bin")
    with pytest.raises(ModelError, match=r"only in adapter_model\.bin, a pickle"):
        load(folder, device="cpu")
    subject = load(folder, device="cpu", allow_bin=True)
    inputs = tiny_inputs(subject.inner)
    with torch.no_grad():
        assert torch.equal(subject.model(**inputs).logits, wrapped(**inputs).logits)


def test_weights_that_the_adapter_lacks_are_noted(lora: tuple[Path, Any]) -> None:
    edit(lora[0], target_modules=["q_proj", "v_proj", "o_proj"])
    subject = load(lora[0], device="cpu")
    assert any("missing adapter keys" in note for note in subject.notes)
