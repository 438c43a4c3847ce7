from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from headcount.text.sentence import Form, divided, place_forms

WORDS = st.text(st.characters(blacklist_categories=["Cs", "Z", "Cc"]), min_size=1, max_size=5)


@given(st.lists(st.tuples(WORDS, st.booleans()), min_size=1, max_size=6))
def test_joined_forms_are_found_where_they_were_put(forms: list[tuple[str, bool]]) -> None:
    given_ = [Form(*form) for form in forms]
    skipped: Counter[str] = Counter()
    text, places = place_forms(given_, None, skipped)
    assert [text[start:end] for start, end in places] == [form.text for form in given_]
    assert place_forms(given_, text, skipped) == (text, places)
    assert not skipped


def test_a_text_that_disagrees_is_counted() -> None:
    skipped: Counter[str] = Counter()
    for text in ("Go away", "Go", "Go on !!", "Goon"):
        assert place_forms([Form("Go"), Form("on")], text, skipped)[0] == (
            "Goon" if text == "Goon" else "Go on"
        )
    assert skipped == {"text comments that disagree with the words": 3}


def test_a_multiword_token_is_divided_or_shared() -> None:
    assert divided("don't", (2, 7), ["do", "n't"]) == [(2, 4), (4, 7)]
    assert divided("zum", (2, 5), ["zu", "dem"]) == [(2, 5)] * 2
    assert divided("a b", (2, 9), ["a", " b"]) == [(2, 9)] * 2, "the text has it otherwise"
