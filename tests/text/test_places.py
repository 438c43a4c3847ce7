"""Where tokens stand, by every tokenizer that tells."""

from __future__ import annotations

import pytest
from tiny_tokenizers import BUILDERS, ENGLISH, GERMAN, marian, python_wordpiece

from headcount.errors import InputError
from headcount.text.spans import EncodeReport, TokenRow, gives_places, must_give_places
from headcount.text.tokenize import Scribe

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
    scribe = Scribe(BUILDERS[kind](), EncodeReport(), places=True)
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
        "BertTokenizerLegacy does not tell where its tokens stand in the text, so words cannot be "
        "found; use the model's fast tokenizer (use_fast=True)."
    )
    with pytest.raises(InputError, match="does not tell"):
        Scribe(python_wordpiece(), EncodeReport(), places=True)
    (row,) = Scribe(python_wordpiece(), EncodeReport()).rows(["Rain"])
    assert row.places is None


@pytest.mark.parametrize(
    ("kind", "target"), [*((kind, False) for kind in TELLING), *((kind, True) for kind in TURNING)]
)
def test_every_letter_stands_in_a_token(kind: str, target: bool) -> None:
    texts = [*ENGLISH, *GERMAN, *ODD]
    plain = Scribe(BUILDERS[kind](), EncodeReport()).rows(texts, target=target)
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
    (row,) = Scribe(tokenizer, EncodeReport(), places=True).rows(["old walnutcake here"])
    assert row.places is not None
    assert (4, 14) in row.places
    assert covered(row) >= {*range(3), *range(4, 14), *range(15, 19)}


def test_a_tokenizer_that_changes_the_text_leaves_places_unknown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tokenizer = marian.__wrapped__()
    own = tokenizer._tokenize
    monkeypatch.setattr(tokenizer, "_tokenize", lambda text: own(text.lower()))
    (row,) = Scribe(tokenizer, EncodeReport(), places=True).rows(["Rain FELL"])
    assert row.places == [None] * len(row.ids)


def test_half_a_character_moves_no_place_silently() -> None:
    (same, shorter) = rows("wordpiece", ["a \ud83d b", "a \ud83d\ude42 b"])
    assert covered(same) >= {0, 4}
    assert covered(shorter) == set()
