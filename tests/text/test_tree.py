from __future__ import annotations

from collections import Counter

import pytest

from headcount.errors import Fault
from headcount.text.sentence import Word, check_tree


def checked(heads: list[int | None]) -> Counter[str]:
    skipped: Counter[str] = Counter()
    check_tree([Word(f"w{n}", head=head) for n, head in enumerate(heads, 1)], "Text 1", skipped)
    return skipped


@pytest.mark.parametrize("heads", [[0], [2, 0], [2, 3, 0, 3], [None, None], []])
def test_trees_and_bare_words_pass(heads: list[int | None]) -> None:
    assert checked(heads) == {}


def test_words_without_a_head_are_counted() -> None:
    assert checked([0, None, 1, None]) == {"words without a head": 2}
    assert checked([2, None]) == {"words without a head": 1}


@pytest.mark.parametrize(
    ("heads", "said", "reason"),
    [
        ([0, 4, 1], "hangs from 4, and there are 3 words", "sentences with a head out of range"),
        ([0, -1], "hangs from -1, and there are 2 words", "sentences with a head out of range"),
        ([0, 0], "Text 1 has 2 roots; a tree has one word", "sentences with several roots"),
        ([0, 2], r"a cycle: word 2 \('w2'\) hangs from itself", "sentences with a cycle"),
        ([0, 3, 4, 2], r"a cycle: word 2 \('w2'\) hangs from itself", "sentences with a cycle"),
        ([2, 3, 2, 0], r"a cycle: word 2 \('w2'\)", "sentences with a cycle"),
        ([1], "a cycle: word 1", "sentences with a cycle"),
    ],
)
def test_what_is_no_tree_is_named(heads: list[int | None], said: str, reason: str) -> None:
    with pytest.raises(Fault, match=said) as caught:
        checked(heads)
    assert caught.value.reason == reason
