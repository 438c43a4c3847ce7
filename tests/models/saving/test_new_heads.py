"""What people do next with a pruned model: a new head, training, LoRA, a save of their own."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import torch
import transformers
from surgery import answer
from tiny import TINY, tiny_inputs
from tiny_subjects import encoder

from headcount.models.loading import load
from headcount.models.modeling_headcount import auto_map
from headcount.models.subject import Subject
from headcount.pruning.remove import prune
from headcount.rooms.transformers4.masks import prune_heads

#: One of each kind, and heads that go: layers have different numbers of heads afterwards.
CASES = {
    "bert": "enc.0.1,enc.1.0-2",
    "distilbert": "enc.0.1,enc.1.0-2",
    "vit": "enc.0.1,enc.1.2-3",
    "llama": "dec.0.0-1",
    "gpt2": "dec.0.1",
    "gptj": "dec.1.3",
    "bart": "enc.0,dec.1.2,cross.2.1-3",
    "marian": "enc.0,dec.1.2,cross.2.1-3",
    "t5": "enc.0.1,dec.2.0-2,cross.0",
}
TRUST = {"trust_remote_code": True}


def said(model: Any, **inputs: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        return answer(model.eval()(**inputs))


def opened(auto: str, folder: Path, **how: Any) -> Any:
    return getattr(transformers, auto).from_pretrained(folder, **TRUST, **how)


@pytest.mark.parametrize("family", CASES)
def test_every_auto_class_of_the_family_opens_what_save_pretrained_wrote(
    family: str, tmp_path: Path
) -> None:
    """What is missing, such as a new head, is what is missing of the whole model."""
    whole = TINY[family]()
    small = prune(Subject(whole), CASES[family])
    small.model.save_pretrained(tmp_path / "raw")
    whole.save_pretrained(tmp_path / "whole", save_original_format=False)
    assert not hasattr(small.model.config, "auto_map")  # the model in hand is as it was
    autos = auto_map(small.model)
    assert len(autos) >= 3
    for auto in autos:
        model, about = opened(auto, tmp_path / "raw", output_loading_info=True)
        plain, wanted = opened(auto, tmp_path / "whole", output_loading_info=True)
        assert type(model).__name__ == type(plain).__name__
        assert isinstance(model, type(plain))
        assert set(about["missing_keys"]) == set(wanted["missing_keys"]), auto
        assert not about["mismatched_keys"], auto
    own = opened(
        next(auto for auto, cls in autos.items() if cls.endswith(f".{type(whole).__name__}")),
        tmp_path / "raw",
    )
    inputs = tiny_inputs(own, pad=2)
    torch.testing.assert_close(said(own, **inputs), said(small.model, **inputs))
    again = load(tmp_path / "raw", device="cpu")
    assert again.heads == small.heads
    # And what transformers opened can be pruned on, and saved by us.
    further = prune(Subject(own), [small.heads[0]])
    torch.testing.assert_close(
        said(further.model, **inputs), said(prune(small, [small.heads[0]]).model, **inputs)
    )
    further.model.save_pretrained(tmp_path / "further")
    again = load(tmp_path / "further", device="cpu")
    torch.testing.assert_close(said(again.model, **inputs), said(further.model, **inputs))


@pytest.mark.parametrize("family", ["bert", "gptj"])
def test_it_travels_to_another_process(family: str) -> None:
    small = prune(Subject(TINY[family]()), CASES[family]).model
    again = pickle.loads(pickle.dumps(small))
    assert type(again) is type(small)
    inputs = tiny_inputs(small)
    assert torch.equal(said(again, **inputs), said(small, **inputs))


def test_the_bare_model_inside_a_head_takes_its_code_along(tmp_path: Path) -> None:
    model = TINY["bert"](model_class="BertForSequenceClassification")
    prune_heads(model, {0: [1]})
    model.bert.save_pretrained(tmp_path)
    inputs = tiny_inputs(model)
    bare = opened("AutoModel", tmp_path)
    torch.testing.assert_close(said(bare, **inputs), said(model.bert, **inputs))


Labels = Callable[[dict[str, torch.Tensor]], torch.Tensor]
#: The auto class of the new head, what its labels are, where LoRA goes, and peft's name for it.
HEADS: dict[str, tuple[str, Labels, list[str], str]] = {
    "bert": (
        "AutoModelForSequenceClassification",
        lambda inputs: torch.tensor([0, 2]),
        ["query", "value"],
        "SEQ_CLS",
    ),
    "llama": (
        "AutoModelForCausalLM",
        lambda inputs: inputs["input_ids"],
        ["q_proj", "v_proj"],
        "CAUSAL_LM",
    ),
    "t5": (
        "AutoModelForSeq2SeqLM",
        lambda inputs: inputs["decoder_input_ids"],
        ["q", "v"],
        "SEQ_2_SEQ_LM",
    ),
}


@pytest.mark.parametrize("family", HEADS)
def test_a_new_head_is_trained_with_lora_merged_and_loaded(family: str, tmp_path: Path) -> None:
    peft = pytest.importorskip("peft")
    auto, labels, places, kind = HEADS[family]
    small = prune(Subject(TINY[family]()), CASES[family])
    small.model.save_pretrained(tmp_path / "raw")
    new = {"num_labels": 3} if kind == "SEQ_CLS" else {}
    model = opened(auto, tmp_path / "raw", **new)
    inputs = tiny_inputs(model)
    tuned = peft.get_peft_model(model, peft.LoraConfig(r=2, target_modules=places, task_type=kind))
    steps = torch.optim.AdamW([one for one in tuned.parameters() if one.requires_grad], lr=0.05)
    for _ in range(3):
        tuned(**inputs, labels=labels(inputs)).loss.backward()
        steps.step()
        steps.zero_grad()
    wanted = said(tuned, **inputs)
    tuned.save_pretrained(tmp_path / "adapter")
    base = opened(auto, tmp_path / "raw", **new)
    with_adapter = peft.PeftModel.from_pretrained(base, tmp_path / "adapter")
    torch.testing.assert_close(said(with_adapter, **inputs), wanted)
    merged = tuned.merge_and_unload()
    merged.save_pretrained(tmp_path / "merged")
    for again in (opened(auto, tmp_path / "merged"), load(tmp_path / "merged", device="cpu").model):
        torch.testing.assert_close(said(again, **inputs), wanted, atol=1e-5, rtol=1e-5)
    # The same through our own Subject, which proves that it loads.
    ours = Subject(merged).save(tmp_path / "ours")
    assert ours.route == "code"


def test_the_trainer_saves_what_loads(tmp_path: Path) -> None:
    pytest.importorskip("accelerate")
    prune(encoder(), CASES["bert"]).model.save_pretrained(tmp_path / "raw")
    model = opened("AutoModelForSequenceClassification", tmp_path / "raw", num_labels=2)
    ids = torch.randint(5, 30, (4, 6), generator=torch.Generator().manual_seed(0))
    rows = [{"input_ids": row, "labels": number % 2} for number, row in enumerate(ids)]
    settings = transformers.TrainingArguments(
        str(tmp_path / "out"),
        max_steps=2,
        per_device_train_batch_size=2,
        save_steps=2,
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
    )
    transformers.Trainer(model, settings, train_dataset=rows).train()
    again = opened("AutoModelForSequenceClassification", tmp_path / "out" / "checkpoint-2")
    torch.testing.assert_close(said(again, input_ids=ids), said(model, input_ids=ids))


def test_what_is_pushed_to_a_hub_has_its_code(tmp_path: Path) -> None:
    small = prune(Subject(TINY["bert"]()), CASES["bert"]).model
    pushed: list[set[str]] = []

    def upload(self: Any, folder: Any, *_: Any, **__: Any) -> None:
        pushed.append({one.name for one in Path(folder).iterdir()})

    hub = "transformers.utils.hub"
    with (
        mock.patch(f"{hub}.PushToHubMixin._upload_modified_files", upload),
        mock.patch(f"{hub}.create_and_tag_model_card"),  # asks the hub for a card, again and again
        mock.patch("huggingface_hub.HfApi.create_repo", return_value=mock.Mock(repo_id="me/it")),
    ):
        small.push_to_hub("me/it")
    assert {"config.json", "model.safetensors", "modeling_headcount.py"} <= pushed[0]
