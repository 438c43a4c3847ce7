from __future__ import annotations

from headcount.text.spans import EncodeReport


def test_nothing_to_say() -> None:
    assert EncodeReport(sentences=5, rows=5, single=2).sentences_in_words() == []


def test_everything_said() -> None:
    report = EncodeReport(
        sentences=100, empty=1, windowed=2, windows=7, truncated=3, lookalikes=1, mended=2
    )
    assert report.sentences_in_words() == [
        "1 of 100 sentences had no token and was skipped.",
        "2 of 100 sentences were too long and gave 7 windows.",
        "3 of 100 sentences were too long and lost the end.",
        "1 token in the text looked special and was spelt out.",
        "2 texts held half a character (U+FFFD now).",
    ]


def test_words_are_told_a_line_each() -> None:
    report = EncodeReport(words=900, unplaced=1, cut=7, shared=20)
    assert report.sentences_in_words() == [
        "1 of 900 words had no token.",
        "7 of 900 words lost a token where a sentence was cut.",
        "20 of 900 words shared a token with another word.",
    ]
