"""Subject: what it takes, what it says of itself, and its hash."""

from __future__ import annotations

import hashlib
import json

import pytest
import torch
from tiny import TINY
from torch import nn

from headcount.errors import ModelError, UsageError
from headcount.models.subject import Subject, check_finite, refuse_nan
from headcount.records.heads import Head


@pytest.mark.parametrize(
    ("family", "line"),
    [
        ("bert", "Subject(x: BertModel, 2 layers x 4 heads enc, float32 on cpu)"),
        ("llama", "Subject(x: LlamaForCausalLM, 2 layers x 4 heads dec, float32 on cpu)"),
        (
            "t5",
            "Subject(x: T5ForConditionalGeneration, 2 layers x 4 heads enc, "
            "3 layers x 4 heads dec, 3 layers x 4 heads cross, float32 on cpu)",
        ),
        ("mamba", "Subject(x: MambaForCausalLM, no heads to reach, float32 on cpu)"),
    ],
)
def test_says_in_one_line_what_it_is(family: str, line: str) -> None:
    assert repr(Subject(TINY[family](), name="x")) == line


@pytest.mark.parametrize(
    ("family", "kind"), [("bert", "enc"), ("gpt2", "dec"), ("bart", "enc-dec")]
)
def test_knows_its_kind(family: str, kind: str) -> None:
    assert Subject(TINY[family]()).kind == kind


def test_lists_heads_by_stack_then_layer_then_index() -> None:
    heads = Subject(TINY["bart"]()).heads
    assert [heads[i] for i in (0, 7, 8, 19, 20, -1)] == [
        Head("enc", 0, 0),
        Head("enc", 1, 3),
        Head("dec", 0, 0),
        Head("dec", 2, 3),
        Head("cross", 0, 0),
        Head("cross", 2, 3),
    ]


def test_is_called_after_its_class_when_nobody_names_it() -> None:
    subject = Subject(TINY["gpt2"]())
    assert (subject.name, subject.source) == ("GPT2LMHeadModel", "in hand")


def test_refuses_what_is_no_model() -> None:
    with pytest.raises(UsageError, match="a PeftModel, not an object of Linear"):
        Subject(nn.Linear(2, 2))
    with pytest.raises(UsageError, match=r"not 'minilm'; hc\.load takes a name or path"):
        Subject("minilm")


def test_refuses_what_is_no_tokenizer() -> None:
    with pytest.raises(UsageError, match="not an object of dict; for a processor pass"):
        Subject(TINY["bert"](), {"a": 1})  # type: ignore[arg-type]


def test_refuses_weights_that_are_not_in_memory() -> None:
    model = TINY["bert"]()
    model.pooler.to("meta")
    with pytest.raises(
        UsageError, match=r"pooler\.dense\.weight of this BertModel is not in memory"
    ):
        Subject(model)


def test_takes_a_peft_wrapper() -> None:
    peft = pytest.importorskip("peft")
    wrapped = peft.get_peft_model(TINY["llama"](), peft.LoraConfig(target_modules=["q_proj"]))
    subject = Subject(wrapped)
    assert type(subject.inner).__name__ == "LlamaForCausalLM"
    assert subject.describe()["adapter"] == "PeftModel"
    assert len(subject.heads) == 8


def slow_hash(model: nn.Module) -> str:
    """The definition, in loops."""
    parts = []
    for name, tensor in sorted(model.state_dict().items()):
        parts.append(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        parts.append(tensor.contiguous().numpy().tobytes())
    return hashlib.sha256(b"".join(parts)).hexdigest()


def test_hash_is_of_names_types_shapes_and_bytes() -> None:
    model = TINY["marian"]()
    assert Subject(model).weights_hash == slow_hash(model)


def test_hash_of_many_weights_is_of_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    model, parts = TINY["marian"](), []
    monkeypatch.setattr("headcount.models.subject._PIECE", 100)
    assert Subject(model).weights_hash == slow_hash(model)  # few: whatever the pieces
    monkeypatch.setattr("headcount.models.subject._LARGE", 1000)
    for name, tensor in sorted(model.state_dict().items()):
        parts.append(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        raw = tensor.contiguous().numpy().tobytes()
        pieces = [raw[start : start + 100] for start in range(0, max(1, len(raw)), 100)]
        parts += [hashlib.sha256(piece).digest() for piece in pieces]
    assert Subject(model).weights_hash == hashlib.sha256(b"".join(parts)).hexdigest()


def test_hash_sees_one_changed_bit_and_nothing_else() -> None:
    before = Subject(TINY["bert"]()).weights_hash
    assert Subject(TINY["bert"](), name="other").weights_hash == before
    changed = TINY["bert"]()
    with torch.no_grad():
        weight = changed.encoder.layer[1].attention.self.key.weight
        weight[3, 5] = torch.nextafter(weight[3, 5], torch.tensor(9.0))
    assert Subject(changed).weights_hash != before


def test_hash_does_not_depend_on_how_a_tensor_lies_in_memory() -> None:
    model = TINY["bert"]()
    before = Subject(model).weights_hash
    weight = model.pooler.dense.weight
    weight.data = weight.data.t().contiguous().t()
    assert not weight.is_contiguous()
    assert Subject(model).weights_hash == before


def test_hash_reads_half_precision() -> None:
    half = Subject(TINY["llama"]().to(torch.bfloat16))
    assert half.weights_hash != Subject(TINY["llama"]()).weights_hash
    assert len(half.weights_hash) == 64


def test_description_is_json_and_complete() -> None:
    subject = Subject(TINY["bert"](), name="mine", source="models/mine", notes=["a note"])
    told = json.loads(json.dumps(subject.describe()))
    assert told == {
        "name": "mine",
        "source": "models/mine",
        "revision": None,
        "class": "BertModel",
        "adapter": None,
        "tokenizer": None,
        "parameters": sum(weight.numel() for weight in subject.model.parameters()),
        "dtype": "float32",
        "device": "cpu",
        "weights_hash": subject.weights_hash,
        "notes": ["a note"],
    }


# --- check_finite names the weight that is broken -----------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_whole_model_passes(dtype: torch.dtype) -> None:
    check_finite(Subject(TINY["llama"]().to(dtype)))


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_the_first_broken_weight_is_named(value: float) -> None:
    model = TINY["llama"]()
    with torch.no_grad():
        model.model.layers[1].self_attn.k_proj.weight[2, :3] = value
        model.lm_head.weight[0, 0] = value
    said = r"model\.layers\.1\.self_attn\.k_proj\.weight of mine holds 3 values of 512"
    with pytest.raises(ModelError, match=said):
        check_finite(Subject(model, name="mine"))


def test_attention_that_is_no_number_is_blamed_on_a_weight_or_on_the_dtype() -> None:
    model = TINY["llama"]().to(torch.bfloat16)
    with pytest.raises(ModelError) as caught:
        refuse_nan(Subject(model, name="mine"), "dec.1")
    assert str(caught.value) == (
        "The attention at dec.1 of mine is not a number, although all weights are; bfloat16 may be "
        "too narrow: use --load dtype=float32 (dtype='float32')."
    )
    with torch.no_grad():
        model.lm_head.weight[0, 0] = float("nan")
    with pytest.raises(ModelError, match=r"The weight lm_head\.weight of mine holds 1 values of"):
        refuse_nan(Subject(model, name="mine"), "dec.1")
