"""Words among tokens, by every tokenizer that tells where its tokens stand."""

from __future__ import annotations

import pytest
from tiny_tokenizers import BUILDERS, ENGLISH, GERMAN

from headcount.text.sentence import Sentence, Word, split_words
from headcount.text.spans import EncodeReport, TokenRow, shorten, windows
from headcount.text.tokenize import Scribe
from headcount.text.words import Placed, count_words, pieces_of

TELLING = [kind for kind in BUILDERS if kind not in ("python_wordpiece", "esm", "byt5")]


def sentence(text: str) -> Sentence:
    return Sentence(text, split_words(text))


def tokens(pieces: object) -> list[list[int]]:
    return [word.nonzero()[0].tolist() for word in pieces]  # type: ignore[attr-defined]


@pytest.mark.parametrize("kind", TELLING)
def test_every_word_has_its_tokens_in_order(kind: str) -> None:
    texts = [*ENGLISH, *GERMAN, "Grüße,  naïve… ½ ﬁne 日本 🙂x", "3½kg ㎏"]
    tokenizer = BUILDERS[kind]()
    for text, row in zip(
        texts, Scribe(tokenizer, EncodeReport(), places=True).rows(texts), strict=True
    ):
        pieces = pieces_of(row, sentence(text))
        found = tokens(pieces)
        assert all(found), "no word without a token"
        assert all(word == list(range(word[0], word[-1] + 1)) for word in found)
        assert sorted(found) == found
        special = [place for place, added in enumerate(row.special) if added]
        assert not pieces[:, special].any()


@pytest.mark.parametrize(
    "kind", ["marian", "m2m100", "t5", "xlm_roberta", "roberta", "gpt2", "llama"]
)
def test_a_mark_of_white_space_opens_the_word_behind_it(kind: str) -> None:
    """The same word is the same tokens wherever it stands: none is left between words."""
    text = "Rain Zyx fell"
    (row,) = Scribe(BUILDERS[kind](), EncodeReport(), places=True).rows([text])
    pieces = pieces_of(row, sentence(text))
    used = pieces.any(0)
    assert [bool(here) for here in used] == [not added for added in row.special]


def test_words_written_as_one_share_its_tokens() -> None:
    zum = Sentence("zum", (Word("zu", start=0, end=3), Word("dem", start=0, end=3)))
    row = TokenRow([1, 5, 6, 2], [1, 0, 0, 1], places=[None, (0, 2), (2, 3), None])
    assert tokens(pieces_of(row, zum)) == [[1, 2], [1, 2]]
    assert Placed(zum, row).shared == 2


def test_a_wide_token_belongs_to_both_words() -> None:
    found = sentence("don't")
    row = TokenRow([5, 6], [0, 0], places=[(0, 4), (4, 5)])
    assert tokens(pieces_of(row, found)) == [[0], [0], [1]]
    assert Placed(found, row).shared == 2


def test_words_without_a_place_and_tokens_without_one() -> None:
    found = Sentence("Go on", (Word("Go"), Word("on", start=3, end=5)))
    row = TokenRow([5, 6], [0, 0], places=[(0, 2), None])
    assert tokens(pieces_of(row, found)) == [[], []]
    assert pieces_of(TokenRow([5, 6], [0, 0]), found).shape == (2, 2)


#: Five words of 1, 2, 1, 3 and 1 tokens.
LONG = sentence("a bc d efg h")
ROW = TokenRow(
    [1, *range(10, 18), 2],
    [1, *[0] * 8, 1],
    places=[None, (0, 1), (2, 3), (3, 4), (5, 6), (7, 8), (8, 9), (9, 10), (11, 12), None],
)


def test_a_word_torn_between_windows_is_in_neither() -> None:
    placed = Placed(LONG, ROW)
    first, second = windows(ROW, 8)
    assert tokens(placed.pieces(first)) == [[1], [2, 3], [4], [], []]
    assert tokens(placed.pieces(second)) == [[], [], [], [], [2]]
    report = EncodeReport()
    count_words(placed, [first, second], report)
    assert (report.words, report.unplaced, report.cut) == (5, 0, 1)


def test_words_behind_the_cut_are_counted() -> None:
    placed = Placed(LONG, ROW)
    cut = shorten(ROW, 5)
    assert tokens(placed.pieces(cut)) == [[1], [2, 3], [], [], []]
    report = EncodeReport()
    count_words(placed, [cut], report)
    count_words(None, [cut], report)
    assert (report.words, report.cut) == (5, 3)


def test_whole_rows_lose_nothing() -> None:
    report = EncodeReport()
    count_words(Placed(LONG, ROW), [ROW], report)
    assert report == EncodeReport(words=5)
