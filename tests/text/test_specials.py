from __future__ import annotations

import pytest
from tiny_tokenizers import BUILDERS

from headcount.text.spans import TokenRow, lookalikes, separator_ids, special_ids, spelt_out


@pytest.mark.parametrize(
    ("kind", "separator"),
    [
        ("wordpiece", "[SEP]"),
        ("python_wordpiece", "[SEP]"),
        ("roberta", "</s>"),
        ("xlnet", "<sep>"),
        ("t5", "</s>"),
        ("marian", "</s>"),
        ("mbart", "</s>"),
        ("gpt2", "<|endoftext|>"),
        ("esm", "<eos>"),
    ],
)
def test_the_separator_is_sep_or_else_eos(kind: str, separator: str) -> None:
    tokenizer = BUILDERS[kind]()
    assert tokenizer.convert_ids_to_tokens(list(separator_ids(tokenizer))) == [separator]


def test_no_separator() -> None:
    class Nothing:
        sep_token_id = None
        eos_token_id = None

    assert separator_ids(Nothing()) == ()  # type: ignore[arg-type]


def test_id_zero_is_an_id() -> None:
    class First:
        sep_token_id = 0
        eos_token_id = 5

    assert separator_ids(First()) == (0,)  # type: ignore[arg-type]


def test_the_unknown_token_is_text() -> None:
    tokenizer = BUILDERS["wordpiece"]()
    names = set(tokenizer.convert_ids_to_tokens(sorted(special_ids(tokenizer))))
    assert names == {"[PAD]", "[CLS]", "[SEP]", "[MASK]"}


def test_special_tokens_that_have_no_name_count_too() -> None:
    tokenizer = BUILDERS["chatty"]()
    start = tokenizer.convert_tokens_to_ids("<|im_start|>")
    assert start in special_ids(tokenizer)


def test_lookalikes_are_special_ids_in_the_text() -> None:
    row = TokenRow([1, 5, 2, 1, 2], [1, 0, 0, 0, 1])
    assert lookalikes(row, frozenset({1, 2})) == 2
    assert lookalikes(row, frozenset({9})) == 0


def test_spelling_out_leaves_true_specials_alone() -> None:
    row = TokenRow([1, 5, 2, 2], [1, 0, 0, 1], [0, 0, 1, 1])
    assert spelt_out(row, {1: [70], 2: [60, 61]}) == TokenRow(
        [1, 5, 60, 61, 2], [1, 0, 0, 0, 1], [0, 0, 1, 1, 1]
    )
    assert spelt_out(TokenRow([2, 2], [0, 1]), {2: [60]}).types is None
