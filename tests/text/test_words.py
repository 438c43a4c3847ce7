"""Maps between words."""

from __future__ import annotations

import unicodedata

import numpy as np
import pytest
import torch
from tiny_tokenizers import BUILDERS, ENGLISH, GERMAN, marian_two_vocabularies
from torch import Tensor

from headcount.errors import UsageError
from headcount.rooms.words.counts import word_maps
from headcount.text.batch import Side, bare_side
from headcount.text.sentence import Sentence, Word, split_words
from headcount.text.spans import EncodeReport, TokenRow, shorten, windows
from headcount.text.tokenize import RowTokenizer
from headcount.text.words import (
    Placed,
    Vocabulary,
    Words,
    count_words,
    is_punctuation,
    is_stop,
    pieces_of,
    vocabulary_of,
)

#: [CLS] a1 a2 . b [SEP], and a row of one word with padding; "." belongs to no word.
PIECES = torch.tensor(
    [
        [[0, 1, 1, 0, 0, 0], [0, 0, 0, 0, 1, 0]],
        [[0, 1, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0]],
    ],
    dtype=torch.bool,
)
SPECIAL = torch.tensor([[1, 0, 0, 0, 0, 1], [1, 0, 1, 0, 0, 0]], dtype=torch.bool)
REAL = torch.tensor([[1, 1, 1, 1, 1, 1], [1, 1, 1, 0, 0, 0]], dtype=torch.bool)
WORDS = Words(
    PIECES,
    PIECES.any(-1),
    [Sentence("a . b", (Word("a"), Word("b"))), Sentence("c", (Word("c"),))],
)


def some_maps(heads: int = 3) -> Tensor:
    """Attention that ends before the padding; rows of padding are not numbers."""
    scores = torch.randn(2, heads, 6, 6, generator=torch.Generator().manual_seed(1))
    maps = scores.masked_fill(~REAL[:, None, None], -torch.inf).softmax(-1)
    return maps.masked_fill(~REAL[:, None, :, None], torch.nan)


def side() -> Side:
    bare = bare_side(REAL.long(), REAL)
    return Side(**{**bare.__dict__, "special": SPECIAL, "words": WORDS})


def by_hand(maps: Tensor, rows: str) -> Tensor:
    """The definition, word by word: columns summed, then one row made of the pieces' rows."""
    found = torch.zeros(*maps.shape[:2], 2, 2)
    for row in range(2):
        for asking in range(2):
            mine = PIECES[row, asking].nonzero()[:, 0].tolist()
            for head in range(maps.shape[1]):
                for answering in range(2):
                    theirs = PIECES[row, answering].nonzero()[:, 0].tolist()
                    each = [maps[row, head, piece, theirs].sum() for piece in mine]
                    if each:
                        value = {"mean": sum(each) / len(each), "first": each[0], "max": max(each)}
                        found[row, head, asking, answering] = value[rows]
    return found


@pytest.mark.parametrize("rows", ["mean", "first"])
def test_columns_are_summed_and_rows_averaged_or_first(rows: str) -> None:
    maps = some_maps()
    ours = word_maps(maps, WORDS, WORDS, rows=rows)  # type: ignore[arg-type]
    torch.testing.assert_close(ours, by_hand(maps, rows))


def test_max_is_scaled_by_all_tokens() -> None:
    maps = some_maps()
    ours = word_maps(maps, WORDS, WORDS, rows="max")
    pieces = maps[0, :, 1:3]
    total = sum(
        pieces[:, :, list(tokens)].sum(-1).max(1).values
        for tokens in ((0,), (1, 2), (3,), (4,), (5,))
    )
    assert isinstance(total, Tensor)
    torch.testing.assert_close(ours[0, :, 0], by_hand(maps, "max")[0, :, 0] / total[:, None])


def test_an_undivided_multiword_token_serves_both_words() -> None:
    pieces = torch.tensor([[[True, False], [True, False], [False, True]]])
    words = Words(pieces, pieces.any(-1), [None])
    maps = torch.tensor([[[[0.75, 0.25], [0.5, 0.5]]]])
    expected = [[0.75, 0.75, 0.25], [0.75, 0.75, 0.25], [0.5, 0.5, 0.5]]
    assert word_maps(maps, words, words)[0, 0].tolist() == expected


def test_a_batch_without_a_word() -> None:
    empty = Words(torch.zeros(2, 0, 6, dtype=torch.bool), torch.zeros(2, 0) > 0, [None, None])
    for rows in ("mean", "first", "max"):
        assert word_maps(some_maps(), empty, empty, rows=rows).shape == (2, 3, 0, 0)  # type: ignore[arg-type]


def test_unknown_rows_are_refused() -> None:
    with pytest.raises(UsageError, match="rows is 'median'; choose mean, first or max"):
        word_maps(some_maps(), WORDS, WORDS, rows="median")  # type: ignore[arg-type]


def test_words_move_with_their_side() -> None:
    moved = side().to("cpu").words
    assert moved is not None
    assert moved.sentences is WORDS.sentences
    assert len(moved) == 2


# --- Words among tokens, by every tokenizer that tells where its tokens stand -------------------


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
        texts, RowTokenizer(tokenizer, EncodeReport(), places=True).rows(texts), strict=True
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
    (row,) = RowTokenizer(BUILDERS[kind](), EncodeReport(), places=True).rows([text])
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


# ---  -------------------------------------------------------------------------------------------


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
