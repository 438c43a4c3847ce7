from __future__ import annotations

import pytest
import torch
from tiny import TINY
from torch import Tensor
from transformers import (
    BartModel,
    EncoderDecoderConfig,
    EncoderDecoderModel,
    M2M100Model,
    MBartModel,
    T5Model,
)

from headcount.errors import ModelError
from headcount.text.tokenize import Intake, intake_of, shift_of

PAD, EOS, CODE = 0, 2, 9
LABELS = torch.tensor([[11, 12, 13, EOS, CODE], [14, EOS, CODE, -100, -100]])


def shifted(model: object) -> list[list[int]]:
    shift = shift_of(model)
    assert shift is not None
    return shift(LABELS.clone()).tolist()


def one_on(start: int) -> list[list[int]]:
    return [[start, 11, 12, 13, EOS], [start, 14, EOS, CODE, PAD]]


@pytest.mark.parametrize(
    ("family", "settings", "expected"),
    [
        ("marian", {"decoder_start_token_id": PAD}, one_on(PAD)),
        ("bart", {"decoder_start_token_id": EOS}, one_on(EOS)),
        ("t5", {"decoder_start_token_id": PAD}, one_on(PAD)),
        ("m2m100", {"decoder_start_token_id": EOS}, one_on(EOS)),
        ("mbart", {}, one_on(CODE)),
    ],
)
def test_each_family_starts_its_own_way(
    family: str, settings: dict[str, int], expected: list[list[int]]
) -> None:
    assert shifted(TINY[family](**settings)) == expected


@pytest.mark.parametrize(
    ("family", "bare", "start"),
    [
        ("bart", BartModel, EOS),
        ("t5", T5Model, PAD),
        ("m2m100", M2M100Model, EOS),
        ("mbart", MBartModel, CODE),
    ],
)
def test_models_without_a_head_start_as_those_with_one(family: str, bare: type, start: int) -> None:
    config = TINY[family](decoder_start_token_id=PAD if family == "t5" else EOS).config
    assert shifted(bare(config)) == one_on(start)


def test_two_models_put_together() -> None:
    small = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2}
    half = TINY["bert"](**small).config
    config = EncoderDecoderConfig.from_encoder_decoder_configs(half, half)
    config.decoder_start_token_id, config.pad_token_id = 1, PAD
    assert shifted(EncoderDecoderModel(config=config)) == one_on(1)


@pytest.mark.parametrize("family", ["bert", "gpt2", "llama", "vit"])
def test_others_have_no_shift(family: str) -> None:
    assert shift_of(TINY[family]()) is None


@pytest.mark.parametrize("family", ["marian", "t5", "bart"])
@pytest.mark.parametrize("half", ["encoder", "decoder"])
def test_one_half_of_an_encoder_decoder_has_no_shift(family: str, half: str) -> None:
    alone = getattr(TINY[family](), f"get_{half}")()
    assert shift_of(alone) is None


def test_a_model_that_does_not_say_how_it_starts() -> None:
    class Mystery(torch.nn.Module):
        class config:  # noqa: N801
            is_encoder_decoder = True
            pad_token_id = 0
            decoder_start_token_id = 0

        def forward(self, input_ids: Tensor, decoder_input_ids: Tensor) -> None: ...

    with pytest.raises(ModelError, match="Mystery does not say how its decoder starts"):
        shift_of(Mystery())


def test_what_a_model_takes() -> None:
    bert = intake_of(TINY["bert"]())
    assert bert.accepts("token_type_ids")
    assert bert.needs_positions
    assert (bert.source_limit, bert.pad_id, bert.shift) == (64, 0, None)
    distilbert = intake_of(TINY["distilbert"]())
    assert not distilbert.accepts("token_type_ids")
    roberta = intake_of(TINY["roberta"](type_vocab_size=1))
    assert not roberta.accepts("token_type_ids"), "it has one type, and pairs have two"
    assert not roberta.needs_positions, "it numbers its positions itself"
    assert not intake_of(TINY["t5"]()).needs_positions


def test_an_adapter_is_looked_through() -> None:
    peft = pytest.importorskip("peft")
    config = peft.LoraConfig(r=2, target_modules=["q_proj"])
    wrapped = peft.get_peft_model(TINY["marian"](decoder_start_token_id=PAD), config)
    assert intake_of(wrapped).takes == intake_of(TINY["marian"]()).takes
    assert shifted(wrapped) == one_on(PAD)


def test_by_default_everything_is_accepted() -> None:
    def shift(labels: Tensor) -> Tensor:
        return labels

    assert Intake().accepts("anything")
    assert not Intake(takes=frozenset({"input_ids"}), shift=shift).accepts("anything")
