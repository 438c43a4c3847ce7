"""Tests of `text/batch.py`."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from tiny import TINY
from tiny_tokenizers import ENGLISH, gpt2, llama, marian, wordpiece
from torch import Tensor
from transformers import BatchEncoding

from headcount.errors import InputError, ModelError
from headcount.text.batch import (
    SIDES,
    Batch,
    EncodedExample,
    Fit,
    Padder,
    Ready,
    Side,
    bare_side,
    is_ready,
    ready_batch,
    side_of,
    spread,
    token_positions,
)
from headcount.text.encoding import encode
from headcount.text.spans import EncodeReport, TokenRow
from headcount.text.tokenize import Intake
from headcount.text.words import Vocabulary


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


# ---  -------------------------------------------------------------------------------------------


def row(content: int) -> TokenRow:
    return TokenRow([1, *range(10, 10 + content), 2], [1, *[0] * content, 1])


def fitted(
    example: EncodedExample, limit: int | None = 6, long: str = "window", paired: bool = False
) -> tuple[list[EncodedExample], EncodeReport]:
    report = EncodeReport()
    fit = Fit(limit, limit, long, paired)
    return fit(example, "Item 3 of c.txt (line 4)", report), report


def test_what_fits_passes() -> None:
    example = EncodedExample(0, row(4))
    found, report = fitted(example)
    assert found == [example]
    assert report == EncodeReport()
    assert fitted(EncodedExample(0, row(400)), limit=None)[0][0].row == row(400)


def test_windows() -> None:
    found, report = fitted(EncodedExample(5, row(9)))
    assert [(example.index, example.window) for example in found] == [(5, 0), (5, 1), (5, 2)]
    assert [len(example.row.ids) for example in found] == [6, 6, 3]
    assert (report.windowed, report.windows, report.truncated) == (1, 3, 0)


def test_truncation() -> None:
    found, report = fitted(EncodedExample(5, row(9)), long="truncate")
    assert [example.row for example in found] == [row(4)]
    assert (report.windowed, report.truncated) == (0, 1)


def test_pairs_are_truncated_not_torn() -> None:
    found, report = fitted(EncodedExample(5, row(9), row(30)), paired=True)
    assert found == [EncodedExample(5, row(4), row(4))]
    assert report.truncated == 1, "one pair, though both of its sides lost tokens"
    found, report = fitted(EncodedExample(5, row(2), row(30)), paired=True)
    assert found == [EncodedExample(5, row(2), row(4))]


def test_an_error_names_item_and_lengths() -> None:
    with pytest.raises(InputError) as caught:
        fitted(EncodedExample(2, row(9)), long="error")
    assert str(caught.value) == (
        "Item 3 of c.txt (line 4) has 11 tokens and the model takes 6; shorten it, or use "
        "long='window' or long='truncate' (--reading long=)."
    )
    with pytest.raises(InputError, match="has 32 tokens and the model takes 6"):
        fitted(EncodedExample(2, row(1), row(30)), long="error", paired=True)


def test_a_side_without_tokens_is_skipped() -> None:
    assert fitted(EncodedExample(0, row(0)))[0] == []
    found, report = fitted(EncodedExample(0, row(3), row(0)))
    assert found == []
    assert (report.empty, report.single) == (1, 0)


def test_single_tokens_are_kept_and_counted() -> None:
    found, report = fitted(EncodedExample(0, row(1)))
    assert len(found) == 1
    assert report.single == 1


# ---  -------------------------------------------------------------------------------------------


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


# --- Ready inputs -------------------------------------------------------------------------------


IDS = torch.tensor([[5, 6, 7], [8, 9, 0]])
REAL = torch.tensor([[1, 1, 1], [1, 1, 0]])


@pytest.mark.parametrize(
    ("corpus", "ready"),
    [
        ({"input_ids": IDS}, True),
        (BatchEncoding({"input_ids": IDS}), True),
        ([{"input_ids": IDS}], True),
        (({"input_ids": IDS},), True),
        (["Rain."], False),
        ([("Rain.", "Regen.")], False),
        ("rain.txt", False),
        ([], False),
    ],
)
def test_inputs_are_told_from_texts(corpus: Any, ready: bool) -> None:
    assert is_ready(corpus) is ready


def test_rows_are_numbered_through_and_counted_at_each_pass() -> None:
    ready = Ready([{"input_ids": IDS, "attention_mask": REAL}, {"input_ids": IDS}], {"enc"})
    for _ in range(2):
        assert [batch.index for batch in ready] == [[0, 1], [2, 3]]
        assert (ready.report.sentences, ready.report.rows) == (4, 4)
        assert ready.report.tokens == {"source": 5 + 6}
    assert len(ready) == 4


def test_the_hash_is_of_names_types_shapes_and_values() -> None:
    inputs = [
        {"input_ids": IDS},
        {"input_ids": IDS.int()},
        {"input_ids": IDS.view(3, 2)},
        {"input_ids": IDS + 1},
        {"inputs": IDS},
        {"input_ids": IDS, "attention_mask": REAL},
    ]
    hashes = [Ready(each, {"enc"}).hash for each in inputs]
    assert len(set(hashes)) == len(hashes)
    assert Ready([{"input_ids": IDS.clone()}], {"enc"}).hash == hashes[0]


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ([{"input_ids": IDS}, {}], "Ready input 2 is not a mapping of tensors, or an empty one."),
        ({"input_ids": [[1]]}, "'input_ids' of ready input 1 is a list; give tensors"),
        ({"input_ids": torch.tensor(3)}, "'input_ids' of ready input 1 is a Tensor; give tensors"),
    ],
)
def test_what_is_no_input(inputs: Any, message: str) -> None:
    with pytest.raises(InputError) as caught:
        Ready(inputs, {"enc"})
    assert str(caught.value).startswith(message)


# ---  -------------------------------------------------------------------------------------------


TOKENS = {0: "<pad>", 2: "<s>", 3: "</s>", 7: "rain", 8: ".", 9: "!", 10: "roof"}


def side(rows: list[TokenRow], left: bool = False) -> Side:
    vocabulary = Vocabulary(lambda ids: [TOKENS[number] for number in ids], " ".join)
    return side_of(rows, vocabulary, separators=(3,), pad_id=0, left=left)


ROWS = [TokenRow([2, 7, 8, 9, 3], [1, 0, 0, 0, 1]), TokenRow([2, 10, 3], [1, 0, 1])]


def test_padding_on_the_right() -> None:
    found = side(ROWS)
    assert found.ids.tolist() == [[2, 7, 8, 9, 3], [2, 10, 3, 0, 0]]
    assert found.real.tolist() == [[True] * 5, [True] * 3 + [False] * 2]
    assert found.tokens == [["<s>", "rain", ".", "!", "</s>"], ["<s>", "roof", "</s>"]]
    assert found.special.int().tolist() == [[1, 0, 0, 0, 1], [1, 0, 1, 0, 0]]
    assert found.separator.int().tolist() == [[0, 0, 0, 0, 1], [0, 0, 1, 0, 0]]
    assert found.punctuation.int().tolist() == [[0, 0, 1, 1, 0], [0] * 5]
    assert found.stops.int().tolist() == [[0, 0, 1, 0, 0], [0] * 5]
    assert found.annotated
    assert len(found) == 2


def test_padding_on_the_left() -> None:
    found = side(ROWS, left=True)
    assert found.ids.tolist() == [[2, 7, 8, 9, 3], [0, 0, 2, 10, 3]]
    assert found.separator.int().tolist() == [[0, 0, 0, 0, 1], [0, 0, 0, 0, 1]]
    assert found.tokens == side(ROWS).tokens


@pytest.mark.parametrize("left", [False, True])
def test_the_first_place_is_never_a_separator(left: bool) -> None:
    """BART's decoder starts with </s>, and GPT-2's first token may be its end of text."""
    rows = [TokenRow([3, 7, 8, 3], [1, 0, 0, 1]), TokenRow([3, 7], [1, 0])]
    found = side(rows, left)
    assert found.separator.sum(dim=1).tolist() == [1, 0]
    assert found.special.sum(dim=1).tolist() == [2, 1]


def test_a_lookalike_is_no_separator() -> None:
    assert side([TokenRow([2, 3, 7, 3], [1, 0, 0, 1])]).separator.int().tolist() == [[0, 0, 0, 1]]


def test_a_special_token_is_never_punctuation() -> None:
    found = side([TokenRow([8, 7, 8], [1, 0, 0])])
    assert found.punctuation.int().tolist() == [[0, 0, 1]]
    assert found.stops.int().tolist() == [[0, 0, 1]]


def test_no_separator_at_all() -> None:
    vocabulary = Vocabulary(lambda ids: ["x"] * len(ids), "".join)
    found = side_of([TokenRow([5, 6], [0, 0])], vocabulary, separators=(), pad_id=0)
    assert not found.separator.any()


def test_types_of_the_tensors() -> None:
    found = side(ROWS)
    assert found.ids.dtype == torch.int64
    masks = (found.real, found.special, found.separator, found.punctuation, found.stops)
    assert all(mask.dtype == torch.bool and mask.shape == (2, 5) for mask in masks)


def test_moving() -> None:
    moved = side(ROWS).to("meta")
    assert moved.ids.device.type == moved.stops.device.type == "meta"
    assert moved.tokens == side(ROWS).tokens


def test_a_bare_side_knows_nothing_of_its_tokens() -> None:
    real = torch.tensor([[True, True], [True, False]])
    bare = bare_side(torch.tensor([[5, 6], [7, 0]]), real)
    assert not bare.annotated
    assert not (bare.special | bare.separator | bare.punctuation | bare.stops).any()
    assert bare.tokens == [[], []]
    assert torch.equal(bare.real, real)


def test_spread() -> None:
    real = np.array([[True, True], [True, False]])
    assert spread(np.array([4, 5, 6]), real, -100).tolist() == [[4, 5], [6, -100]]


def test_sound_without_what_the_decoder_reads_is_told() -> None:
    sound = {"input_features": torch.zeros(2, 8, 20)}
    with pytest.raises(InputError, match=r"lack decoder_input_ids \(they have input_fea"):
        ready_batch(sound, ("enc", "dec", "cross"))
    assert len(ready_batch(sound, ("enc",))) == 2
