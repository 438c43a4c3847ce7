from __future__ import annotations

import pytest
import torch
from tiny import TINY
from tiny_tokenizers import ENGLISH, marian, wordpiece

from headcount.errors import InputError
from headcount.text.batch import SIDES, ready_batch
from headcount.text.encode import encode
from headcount.text.tokenize import Intake


def test_who_asks_and_who_answers() -> None:
    def shift(labels: torch.Tensor) -> torch.Tensor:
        return torch.cat([torch.zeros_like(labels[:, :1]), labels[:, :-1]], dim=1)

    pairs = [("Rain fell.", "Regen fiel.")]
    (batch,) = encode(pairs, marian(), stacks=set(SIDES), intake=Intake(shift=shift))
    source, target = batch.sides["source"], batch.sides["target"]
    for stack, sides in (("enc", (source, source)), ("dec", (target, target))):
        assert (batch.query(stack), batch.key(stack)) == sides
    assert batch.query("cross") is target
    assert batch.key("cross") is source


def test_a_side_that_is_not_there() -> None:
    (batch,) = encode(ENGLISH[:2], wordpiece(), stacks={"enc"})
    assert batch.query("dec") is None
    assert batch.query("enc") is batch.sides["source"]


def test_moving_takes_everything_along() -> None:
    (batch,) = encode(ENGLISH[:2], wordpiece(), stacks={"enc"})
    moved = batch.to("meta")
    assert {tensor.device.type for tensor in moved.inputs.values()} == {"meta"}
    assert moved.sides["source"].real.device.type == "meta"
    assert moved.index == batch.index
    assert len(moved) == 2


def test_ready_ids_of_an_encoder() -> None:
    ids = torch.tensor([[5, 6, 7], [8, 9, 0]])
    inputs = {"input_ids": ids, "attention_mask": torch.tensor([[1, 1, 1], [1, 1, 0]])}
    batch = ready_batch(inputs, {"enc"}, first=10)
    side = batch.sides["source"]
    assert side.real.tolist() == [[True, True, True], [True, True, False]]
    assert side.tokens == [["5", "6", "7"], ["8", "9"]]
    assert not side.annotated
    assert not side.special.any()
    assert batch.index == [10, 11]
    assert batch.inputs == inputs


def test_ready_ids_of_a_decoder() -> None:
    batch = ready_batch({"input_ids": torch.tensor([[5, 6]])}, {"dec"})
    assert list(batch.sides) == ["target"]
    assert batch.sides["target"].real.all()


def test_ready_inputs_of_an_encoder_decoder() -> None:
    inputs = {
        "input_ids": torch.tensor([[5, 6, 7]]),
        "decoder_input_ids": torch.tensor([[1, 8]]),
        "decoder_attention_mask": torch.tensor([[1, 0]]),
    }
    batch = ready_batch(inputs, {"enc", "dec", "cross"})
    assert batch.sides["source"].ids.shape == (1, 3)
    assert batch.sides["target"].real.tolist() == [[True, False]]


def test_sound_has_no_side_but_its_decoder_has() -> None:
    inputs = {
        "input_features": torch.zeros(2, 80, 100),
        "decoder_input_ids": torch.ones(2, 3).long(),
    }
    batch = ready_batch(inputs, {"enc", "dec", "cross"})
    assert list(batch.sides) == ["target"]
    assert len(batch) == 2


def test_images_have_no_side_and_run() -> None:
    model = TINY["vit"]()
    batch = ready_batch({"pixel_values": torch.zeros(2, 3, 16, 16)}, {"enc"})
    assert batch.sides == {}
    assert model(**batch.inputs).last_hidden_state.shape[0] == len(batch) == 2


def test_embeddings_have_a_side_of_their_length() -> None:
    inputs = {"inputs_embeds": torch.zeros(2, 4, 8), "attention_mask": torch.ones(2, 4)}
    side = ready_batch(inputs, {"enc"}).sides["source"]
    assert side.real.shape == (2, 4)


def test_uneven_ready_inputs() -> None:
    inputs = {"input_ids": torch.zeros(2, 3), "attention_mask": torch.zeros(1, 3)}
    with pytest.raises(InputError) as caught:
        ready_batch(inputs, {"enc"})
    assert str(caught.value) == (
        "Ready inputs must all have the same first axis, the batch; they have input_ids 2, "
        "attention_mask 1."
    )
    with pytest.raises(InputError, match="they have nothing"):
        ready_batch({}, {"enc"})


def test_a_mask_of_another_shape() -> None:
    inputs = {"input_ids": torch.zeros(2, 3), "attention_mask": torch.zeros(2, 1, 3, 3)}
    with pytest.raises(
        InputError, match=r"shape \(2, 1, 3, 3\); it must be that of the ids, \(2, 3"
    ):
        ready_batch(inputs, {"enc"})
