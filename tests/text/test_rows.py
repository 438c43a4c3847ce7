from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headcount.errors import UsageError
from headcount.text.spans import TokenRow, content_length, shorten, windows


def row(lead: int, content: int, tail: int) -> TokenRow:
    ids = [*range(900, 900 + lead), *range(content), *range(990, 990 + tail)]
    special = [1] * lead + [0] * content + [1] * tail
    return TokenRow(ids, special, [number % 2 for number in ids])


def pair(first: int, second: int) -> TokenRow:
    """[CLS] first [SEP] second [SEP], with token types."""
    ids = [901, *range(first), 902, *range(100, 100 + second), 902]
    special = [1, *[0] * first, 1, *[0] * second, 1]
    return TokenRow(ids, special, [0] * (first + 2) + [1] * (second + 1))


rows = st.builds(row, st.integers(0, 2), st.integers(1, 40), st.integers(0, 2))


@given(rows, st.integers(5, 20))
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


@given(rows, st.integers(5, 20))
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
