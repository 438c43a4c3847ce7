from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from tiny_tokenizers import gpt2, llama, marian, wordpiece
from torch import Tensor

from headcount.errors import ModelError
from headcount.text.batch import Batch, EncodedExample, Padder, token_positions
from headcount.text.spans import TokenRow
from headcount.text.tokenize import Intake


def start_with_nine(labels: Tensor) -> Tensor:
    filled = labels.masked_fill(labels == -100, 0)
    return torch.cat([torch.full_like(filled[:, :1], 9), filled[:, :-1]], dim=1)


def wrap_last(labels: Tensor) -> Tensor:
    """mBART's way: the last label goes first."""
    filled = labels.masked_fill(labels == -100, 0)
    last = filled.gather(1, filled.ne(0).sum(dim=1, keepdim=True) - 1)
    return torch.cat([last, filled[:, :-1]], dim=1)


LABELS = [TokenRow([11, 12, 13, 2], [0, 0, 0, 1]), TokenRow([14, 2], [0, 1])]


def translated(shift: object, left: bool = False) -> Batch:
    intake = Intake(shift=shift, pad_id=0)  # type: ignore[arg-type]
    examples = [
        EncodedExample(n, TokenRow([5, 2], [0, 1]), labels) for n, labels in enumerate(LABELS)
    ]
    return Padder(marian(), intake, left=left).batch(examples, "source")


def test_decoder_input_has_its_own_length_whatever_the_padding() -> None:
    batch = translated(start_with_nine)
    side = batch.sides["target"]
    assert batch.inputs["decoder_input_ids"].tolist() == [[9, 11, 12, 13], [9, 14, 0, 0]]
    assert side.real.int().tolist() == [[1, 1, 1, 1], [1, 1, 0, 0]]
    assert side.special.int().tolist() == [[1, 0, 0, 0], [1, 0, 0, 0]]
    assert batch.labels is not None
    assert batch.labels.tolist() == [[11, 12, 13, 2], [14, 2, -100, -100]]


def test_decoder_input_padded_on_the_left() -> None:
    batch = translated(wrap_last, left=True)
    assert batch.inputs["decoder_input_ids"].tolist() == [[2, 11, 12, 13], [0, 0, 2, 14]]
    assert batch.inputs["decoder_attention_mask"].tolist() == [[1, 1, 1, 1], [0, 0, 1, 1]]
    assert batch.labels is not None
    assert batch.labels.tolist() == [[11, 12, 13, 2], [-100, -100, 14, 2]]


def test_a_shift_that_is_none() -> None:
    with pytest.raises(ModelError, match="is not its labels moved by one place"):
        translated(lambda labels: labels.flip(1))


def test_the_encoder_alone_still_gets_a_decoder_token() -> None:
    padder = Padder(marian(), Intake(shift=start_with_nine, pad_id=0))
    batch = padder.batch([EncodedExample(0, TokenRow([5, 6, 2], [0, 0, 1]))], "source")
    assert batch.inputs["decoder_input_ids"].tolist() == [[9]]
    assert list(batch.sides) == ["source"]
    assert batch.labels is None


def examples(types: list[int] | None = None) -> list[EncodedExample]:
    return [
        EncodedExample(0, TokenRow([5, 6, 7], [0, 0, 0], types)),
        EncodedExample(1, TokenRow([8], [0], types and types[:1])),
    ]


def test_token_types_only_where_they_are_taken() -> None:
    with_types = examples([0, 0, 1])
    batch = Padder(wordpiece(), Intake()).batch(with_types, "source")
    assert batch.inputs["token_type_ids"].tolist() == [[0, 0, 1], [0, 0, 0]]
    takes = frozenset({"input_ids", "attention_mask"})
    batch = Padder(wordpiece(), Intake(takes=takes)).batch(with_types, "source")
    assert set(batch.inputs) == takes
    assert "token_type_ids" not in Padder(gpt2(), Intake()).batch(examples(), "target").inputs


def test_positions_only_when_padding_is_on_the_left() -> None:
    intake = Intake(needs_positions=True)
    assert "position_ids" not in Padder(gpt2(), intake).batch(examples(), "target").inputs
    left = Padder(gpt2(), intake, left=True).batch(examples(), "target")
    assert left.inputs["position_ids"].tolist() == [[0, 1, 2], [0, 0, 0]]
    plain = Padder(gpt2(), Intake(), left=True).batch(examples(), "target")
    assert "position_ids" not in plain.inputs


def test_positions_count_real_tokens() -> None:
    real = torch.tensor([[0, 0, 1, 1], [1, 1, 1, 1], [1, 1, 0, 0]]).bool()
    assert token_positions(real).tolist() == [[0, 0, 0, 1], [0, 1, 2, 3], [0, 1, 1, 1]]


@pytest.mark.parametrize(
    ("model", "tokenizer", "eos", "expected"),
    [(4, 5, 6, 4), (None, 5, 6, 5), (None, None, 6, 6), (None, None, None, 0), (-1, 5, 6, 5)],
)
def test_what_is_padded_with(
    model: int | None, tokenizer: int | None, eos: int | None, expected: int
) -> None:
    names = SimpleNamespace(
        pad_token_id=tokenizer,
        eos_token_id=eos,
        sep_token_id=None,
        convert_ids_to_tokens=lambda ids: ["x"] * len(ids),
        convert_tokens_to_string="".join,
    )
    padder = Padder(names, Intake(pad_id=model))  # type: ignore[arg-type]
    assert padder.batch(examples(), "target").inputs["input_ids"].tolist()[1][-1] == expected


@pytest.mark.parametrize("build", [gpt2, llama])
def test_a_tokenizer_without_padding_stays_so(build: object) -> None:
    tokenizer = build()  # type: ignore[operator]
    assert tokenizer.pad_token is None
    batch = Padder(tokenizer, Intake()).batch(examples(), "target")
    assert batch.inputs["attention_mask"].tolist() == [[1, 1, 1], [1, 0, 0]]
    assert tokenizer.pad_token is None
