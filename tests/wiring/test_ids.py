"""Ids that a model cannot embed are told before they end in an index error."""

from __future__ import annotations

import pytest
import torch
from tiny import TINY, tiny_inputs

from headcount.errors import ModelError
from headcount.models.subject import Subject
from headcount.wiring.sighting import check_ids


@pytest.mark.parametrize("family", ["bert", "gpt2", "t5", "marian", "whisper", "vit", "xlnet"])
def test_ids_of_the_vocabulary_pass(family: str) -> None:
    model = TINY[family]()
    check_ids(Subject(model), tiny_inputs(model))


@pytest.mark.parametrize("name", ["input_ids", "decoder_input_ids"])
@pytest.mark.parametrize("family", ["marian", "t5"])
def test_an_id_too_large_is_named_with_its_side(family: str, name: str) -> None:
    model = TINY[family]()
    inputs = tiny_inputs(model) | {name: torch.tensor([[3, 96], [4, 5]])}
    with pytest.raises(ModelError) as caught:
        check_ids(Subject(model, name="mine"), inputs)
    assert str(caught.value) == (
        f"{name} holds the token id 96 and mine embeds 96, from 0: this is not the tokenizer that "
        "the model was trained with."
    )


def test_no_token_is_no_wrong_token() -> None:
    check_ids(Subject(TINY["bert"]()), {"input_ids": torch.zeros(0, 3).long()})
