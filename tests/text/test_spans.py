"""Tests of `text/spans.py`."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiny_tokenizers import BUILDERS, ENGLISH, GERMAN, marian, python_wordpiece, wordpiece

from headcount.errors import InputError, UsageError
from headcount.text.spans import (
    EncodeReport,
    TokenRow,
    content_length,
    gives_places,
    lookalikes,
    must_give_places,
    separator_ids,
    shorten,
    special_ids,
    spelt_out,
    untouched,
    windows,
)
from headcount.text.tokenize import RowTokenizer


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


# --- Where tokens stand, by every tokenizer that tells ------------------------------------------


SILENT = ("python_wordpiece", "esm", "byt5")
TELLING = [kind for kind in BUILDERS if kind not in SILENT]
#: Those that write a target otherwise than a source.
TURNING = ("mbart", "marian", "marian_two_vocabularies", "m2m100")
#: Odd spaces, characters that normalise into several, look-alikes, a language code.
ODD = [
    "Grüße, naïve  Xylophon… ½ ﬁne",
    "  leading 日本 Qq🙂x",
    "Tom's 3½kg ㎏㎏",
    "Rain </s> fell [SEP] x",
    ">>de<< Hello there",
]


def rows(kind: str, texts: list[str], **how: object) -> list[TokenRow]:
    scribe = RowTokenizer(BUILDERS[kind](), EncodeReport(), places=True)
    return scribe.rows(texts, **how)  # type: ignore[arg-type]


def covered(row: TokenRow) -> set[int]:
    assert row.places is not None
    return {letter for place in row.places if place for letter in range(*place)}


@pytest.mark.parametrize("kind", BUILDERS)
def test_who_tells(kind: str) -> None:
    assert gives_places(BUILDERS[kind]()) == (kind in TELLING)


def test_a_silent_tokenizer_is_refused_where_places_are_asked_for() -> None:
    with pytest.raises(InputError) as caught:
        must_give_places(python_wordpiece())
    assert str(caught.value) == (
        "BertTokenizerLegacy does not give the places of its tokens in the text, so words cannot "
        "be found; use the model's fast tokenizer (use_fast=True)."
    )
    with pytest.raises(InputError, match="does not give"):
        RowTokenizer(python_wordpiece(), EncodeReport(), places=True)
    (row,) = RowTokenizer(python_wordpiece(), EncodeReport()).rows(["Rain"])
    assert row.places is None


@pytest.mark.parametrize(
    ("kind", "target"), [*((kind, False) for kind in TELLING), *((kind, True) for kind in TURNING)]
)
def test_every_letter_stands_in_a_token(kind: str, target: bool) -> None:
    texts = [*ENGLISH, *GERMAN, *ODD]
    plain = RowTokenizer(BUILDERS[kind](), EncodeReport()).rows(texts, target=target)
    for text, row, bare in zip(texts, rows(kind, texts, target=target), plain, strict=True):
        assert list(row.ids) == list(bare.ids), "places change no token"
        letters = {place for place, letter in enumerate(text) if not letter.isspace()}
        assert letters <= covered(row)
        assert row.places is not None
        assert len(row.places) == len(row.ids)
        specials = [place for place, added in zip(row.places, row.special, strict=True) if added]
        assert set(specials) <= {None}


@pytest.mark.parametrize("kind", ["wordpiece", "roberta", "t5", "xlm_roberta"])
def test_a_second_text_counts_on_from_the_first(kind: str) -> None:
    first, second = "Rain fell.", "Two crows."
    (row,) = rows(kind, [first], seconds=[second])
    (alone,) = rows(kind, [first])
    text = f"{first} {second}"
    assert covered(row) >= {place for place, letter in enumerate(text) if not letter.isspace()}
    own = [place for place in alone.places or () if place]
    assert [place for place in row.places or () if place][: len(own)] == own


def test_the_letters_of_a_lookalike_share_its_place() -> None:
    (row,) = rows("t5", ["Rain </s>"])
    assert row.places is not None
    assert row.places.count((5, 9)) == 4


def test_words_that_a_user_added_have_their_place() -> None:
    tokenizer = marian.__wrapped__()
    tokenizer.add_tokens(["walnutcake"])
    (row,) = RowTokenizer(tokenizer, EncodeReport(), places=True).rows(["old walnutcake here"])
    assert row.places is not None
    assert (4, 14) in row.places
    assert covered(row) >= {*range(3), *range(4, 14), *range(15, 19)}


def test_a_tokenizer_that_changes_the_text_leaves_places_unknown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tokenizer = marian.__wrapped__()
    own = tokenizer._tokenize
    monkeypatch.setattr(tokenizer, "_tokenize", lambda text: own(text.lower()))
    (row,) = RowTokenizer(tokenizer, EncodeReport(), places=True).rows(["Rain FELL"])
    assert row.places == [None] * len(row.ids)


def test_half_a_character_moves_no_place_silently() -> None:
    (same, shorter) = rows("wordpiece", ["a \ud83d b", "a \ud83d\ude42 b"])
    assert covered(same) >= {0, 4}
    assert covered(shorter) == set()


# ---  -------------------------------------------------------------------------------------------


def row(lead: int, content: int, tail: int) -> TokenRow:
    ids = [*range(900, 900 + lead), *range(content), *range(990, 990 + tail)]
    special = [1] * lead + [0] * content + [1] * tail
    return TokenRow(ids, special, [number % 2 for number in ids])


def pair(first: int, second: int) -> TokenRow:
    """[CLS] first [SEP] second [SEP], with token types."""
    ids = [901, *range(first), 902, *range(100, 100 + second), 902]
    special = [1, *[0] * first, 1, *[0] * second, 1]
    return TokenRow(ids, special, [0] * (first + 2) + [1] * (second + 1))


rows_rows = st.builds(row, st.integers(0, 2), st.integers(1, 40), st.integers(0, 2))


@given(rows_rows, st.integers(5, 20))
def test_windows_hold_the_text_once_in_order(whole: TokenRow, limit: int) -> None:
    pieces = windows(whole, limit)
    content = [
        n for piece in pieces for n, s in zip(piece.ids, piece.special, strict=True) if not s
    ]
    assert content == [n for n, s in zip(whole.ids, whole.special, strict=True) if not s]
    specials = [n for n, s in zip(whole.ids, whole.special, strict=True) if s]
    for piece in pieces:
        assert len(piece.ids) == len(piece.special) == len(piece.types or ()) <= limit
        assert [n for n, s in zip(piece.ids, piece.special, strict=True) if s] == specials
        assert piece.types == [n % 2 for n in piece.ids], "token types travel with their tokens"
        assert content_length(piece) >= 1
    assert all(len(piece.ids) == limit for piece in pieces[:-1]), "only the last may be shorter"


@given(rows_rows, st.integers(5, 20))
def test_a_shortened_text_is_the_first_window(whole: TokenRow, limit: int) -> None:
    assert shorten(whole, limit).ids == list(windows(whole, limit)[0].ids)


def test_what_fits_is_left_alone() -> None:
    whole = row(1, 3, 1)
    assert windows(whole, 5) == [whole]


@pytest.mark.parametrize(
    ("first", "second", "limit", "kept"),
    [
        (10, 2, 9, (4, 2)),
        (2, 10, 9, (2, 4)),
        (10, 10, 9, (3, 3)),
        (10, 10, 10, (3, 4)),
        (10, 4, 11, (4, 4)),
        (1, 1, 5, (1, 1)),
    ],
)
def test_a_pair_loses_the_end_of_its_longer_text(
    first: int, second: int, limit: int, kept: tuple[int, int]
) -> None:
    one, two = kept
    assert shorten(pair(first, second), limit) == pair(one, two)


@pytest.mark.parametrize("limit", [1, 2])
def test_no_room_for_text(limit: int) -> None:
    with pytest.raises(UsageError) as caught:
        windows(row(1, 5, 1), limit)
    assert str(caught.value) == (
        f"A length of {limit} leaves no room for text beside 2 special tokens; use 3 or more."
    )
    with pytest.raises(UsageError, match="beside 3 special tokens; use 5 or more"):
        shorten(pair(5, 5), 4)


def test_length_of_the_text_itself() -> None:
    assert content_length(row(2, 7, 1)) == 7
    assert content_length(TokenRow([901, 902], [1, 1])) == 0


def test_places_go_with_their_tokens() -> None:
    places = [None, (0, 1), (1, 2), (3, 4), None]
    row = TokenRow([101, 5, 6, 7, 102], [1, 0, 0, 0, 1], places=places)
    assert [piece.places for piece in windows(row, 4)] == [
        [None, (0, 1), (1, 2), None],
        [None, (3, 4), None],
    ]
    assert shorten(row, 3).places == [None, (0, 1), None]


# ---  -------------------------------------------------------------------------------------------


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


# ---  -------------------------------------------------------------------------------------------


def state(tokenizer: object) -> object:
    backend = tokenizer.backend_tokenizer  # type: ignore[attr-defined]
    return backend.truncation, backend.padding, backend.encode_special_tokens, backend.to_str()


@pytest.fixture
def set_up() -> object:
    """A tokenizer whose file asks for truncation and padding, as sentence models' do."""
    tokenizer = wordpiece()
    backend = tokenizer.backend_tokenizer
    backend.enable_truncation(max_length=4)
    backend.enable_padding(length=4, pad_id=0, pad_token="[PAD]")
    yield tokenizer
    backend.no_truncation()
    backend.no_padding()


def test_settings_of_the_backend_come_back(set_up: object) -> None:
    before = state(set_up)
    rows = RowTokenizer(set_up, EncodeReport()).rows(ENGLISH)  # type: ignore[arg-type]
    assert max(len(row.ids) for row in rows) > 4, "its truncation is not ours"
    assert state(set_up) == before


def test_settings_come_back_after_an_error(set_up: object) -> None:
    before = state(set_up)
    with pytest.raises(TypeError):
        RowTokenizer(set_up, EncodeReport()).rows([None])  # type: ignore[arg-type, list-item]
    with pytest.raises(KeyboardInterrupt):
        _interrupted(set_up)
    assert state(set_up) == before


def direction(tokenizer: object) -> object:
    """What turns with the side that a translator's tokenizer writes."""
    names = ("prefix_tokens", "suffix_tokens", "current_spm", "cur_lang_code")
    return [getattr(tokenizer, name, None) for name in names]


@pytest.mark.parametrize("kind", ["mbart", "m2m100", "marian"])
def test_a_translators_tokenizer_is_left_on_its_source_side(kind: str) -> None:
    tokenizer = BUILDERS[kind]()
    before = direction(tokenizer)
    RowTokenizer(tokenizer, EncodeReport()).rows(ENGLISH, target=True)
    assert direction(tokenizer) == before


@pytest.mark.parametrize("kind", ["mbart", "m2m100", "marian"])
def test_also_after_an_error_on_the_target_side(kind: str) -> None:
    tokenizer = BUILDERS[kind]()
    tokenizer("Rain.")
    before = direction(tokenizer)
    with pytest.raises(KeyboardInterrupt):
        _interrupted(tokenizer)
    assert direction(tokenizer) == before


def _interrupted(tokenizer: object) -> None:
    """Change what a call may change, then fail in the middle of it."""
    with untouched(tokenizer):  # type: ignore[arg-type]
        if hasattr(tokenizer, "_switch_to_target_mode"):
            tokenizer._switch_to_target_mode()
        if tokenizer.is_fast:  # type: ignore[attr-defined]
            tokenizer.backend_tokenizer.no_padding()  # type: ignore[attr-defined]
        raise KeyboardInterrupt
