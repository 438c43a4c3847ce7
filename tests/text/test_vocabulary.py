from __future__ import annotations

import unicodedata

import numpy as np
import pytest
from tiny_tokenizers import BUILDERS, marian_two_vocabularies

from headcount.text.words import Vocabulary, is_punctuation, is_stop, vocabulary_of

MARKS = [".", ",", ";", "!", "...", "»"]


@pytest.mark.parametrize("text", [".", "?!", "„", "—", "…", "[", "_", "#", "٪", "。", "’"])
def test_punctuation(text: str) -> None:
    assert is_punctuation(text)


@pytest.mark.parametrize("text", ["", "a", "a.", "$", "+", "<", "1", "🙂", "\u0301", "\ufffd", " "])
def test_no_punctuation(text: str) -> None:
    assert not is_punctuation(text)


def test_stops_are_exactly_two() -> None:
    everything = [chr(code) for code in range(0x3100)]
    assert [text for text in everything if is_stop(text)] == [",", "."]
    assert not is_stop("..")
    assert not is_stop("")


@pytest.mark.parametrize(
    ("kind", "token", "punctuation", "stop"),
    [
        ("wordpiece", ".", True, True),
        ("wordpiece", "##.", True, True),
        ("wordpiece", "##s", False, False),
        ("wordpiece", ";", True, False),
        ("python_wordpiece", "##,", True, True),
        ("gpt2", "Ġ,", True, True),
        ("gpt2", ".", True, True),
        ("gpt2", "...", True, False),
        ("gpt2", "Ġ", False, False),
        ("gpt2", "Ċ", False, False),
        ("gpt2", "##.", True, False),
        ("gpt2", "âĢŀ", True, False),
        ("gpt2", "âĢ", False, False),
        ("gpt2", "Ġ$", False, False),
        ("llama", "▁.", True, True),
        ("llama", "<0x2C>", True, True),
        ("llama", "<0xE2>", False, False),
        ("llama", "▁", False, False),
        ("t5", "▁,", True, True),
        ("t5", "▁", False, False),
        ("t5", "(", True, False),
        ("xlnet", "▁(", True, False),
        ("marian", "▁.", True, True),
        ("marian", ",", True, True),
        ("marian", "▁the", False, False),
        ("m2m100", "▁!", True, False),
        ("byt5", ".", True, True),
        ("byt5", "\u00e2", False, False),
    ],
)
def test_markers_are_no_part_of_a_token(
    kind: str, token: str, punctuation: bool, stop: bool
) -> None:
    vocabulary = Vocabulary(lambda ids: [token], BUILDERS[kind]().convert_tokens_to_string)
    found = vocabulary.flags(np.array([0]))
    assert [flag.tolist() for flag in found] == [[punctuation], [stop]]


def test_a_token_with_a_suffix_marker() -> None:
    def say(tokens: list[str]) -> str:
        return "".join(tokens).replace("</w>", " ").strip()

    vocabulary = Vocabulary(lambda ids: [",</w>", "a</w>"], say)
    assert vocabulary.flags(np.array([0, 1]))[1].tolist() == [True, False]


@pytest.mark.parametrize("kind", sorted(BUILDERS))
def test_every_token_of_every_vocabulary(kind: str) -> None:
    """The table agrees with decoding a known word and the token behind it, id by id."""
    tokenizer = BUILDERS[kind]()
    vocabulary = vocabulary_of(tokenizer, target=True)
    ids = np.arange(min(len(tokenizer), 260))
    punctuation, stops = vocabulary.flags(ids)
    tokens = tokenizer.convert_ids_to_tokens(ids.tolist())
    assert vocabulary.tokens(ids.tolist()) == tokens
    for number, token in enumerate(tokens):
        bare = token.replace("▁", "").replace("Ġ", "").removeprefix("##")
        plain = bare.isascii() and bare.isprintable() and not bare.startswith("<0x")
        if plain:
            letters = [unicodedata.category(letter)[0] for letter in bare]
            assert punctuation[number] == (set(letters) == {"P"}), token
            assert stops[number] == (bare in (".", ",")), token


def test_a_token_is_looked_up_once() -> None:
    asked: list[int] = []

    def spell(ids: list[int]) -> list[str]:
        asked.extend(ids)
        return [f"t{number}" for number in ids]

    vocabulary = Vocabulary(spell, "".join)
    for ids in ([5, 5, 2], [2, 9], [5, 1000], [1000, 3]):
        vocabulary.flags(np.array(ids))
    assert sorted(asked) == [2, 3, 5, 9, 1000]
    assert vocabulary.tokens([1000, 5]) == ["t1000", "t5"]


def test_no_ids_at_all() -> None:
    found = Vocabulary(lambda ids: [], "".join).flags(np.array([], dtype=np.int64))
    assert [flag.tolist() for flag in found] == [[], []]


def test_an_id_without_a_token() -> None:
    vocabulary = Vocabulary(lambda ids: [None] * len(ids), "".join)  # type: ignore[list-item]
    assert vocabulary.flags(np.array([7]))[0].tolist() == [False]
    assert vocabulary.tokens([7]) == [""]


def test_source_and_target_vocabularies_may_differ() -> None:
    tokenizer = marian_two_vocabularies()
    text = "Rain fell on the tin roof."
    ids = tokenizer(text)["input_ids"][:-1]
    source, target = vocabulary_of(tokenizer), vocabulary_of(tokenizer, target=True)
    for vocabulary in (source, target):
        vocabulary.flags(np.array(ids))
    assert "".join(source.tokens(ids)).replace("▁", " ").strip() == text
    assert source.tokens(ids) != target.tokens(ids)


def test_a_token_that_cannot_be_read_is_itself() -> None:
    def say(tokens: list[str]) -> str:
        raise KeyError(tokens[-1])

    vocabulary = Vocabulary(lambda ids: [","], say)
    assert vocabulary.flags(np.array([0]))[1].tolist() == [True]
