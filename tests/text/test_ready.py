"""Ready inputs: batches in order, counted and hashed."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from transformers import BatchEncoding

from headcount.errors import InputError
from headcount.text.batch import Ready, is_ready

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
