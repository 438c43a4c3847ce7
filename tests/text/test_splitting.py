from __future__ import annotations

import pytest

from headcount.text.sentence import split_words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Ann's cat.", ["Ann", "'", "s", "cat", "."]),
        ("US$10 – naïve\u00a0", ["US", "$", "10", "–", "naïve"]),
        ("Где?!", ["Где", "?", "!"]),
        ("  \n", []),
    ],
)
def test_runs_of_letters_and_single_signs(text: str, words: list[str]) -> None:
    found = split_words(text)
    assert [word.form for word in found] == words
    assert [text[word.start : word.end] for word in found] == words
