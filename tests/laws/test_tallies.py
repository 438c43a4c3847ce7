"""Numbers don't depend on plumbing: batches, padding and shards never show."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sightings import batch_of, draw_texts, table_of, tally_up
from tiny import INTERFACE

from headcount.models.subject import Subject
from headcount.records.table import HeadTable

KINDS = {"bert": "enc", "albert": "enc", "llama": "dec", "gpt_oss": "dec", "marian": "enc-dec"}
SUBJECTS = {family: Subject(INTERFACE[family]()) for family in KINDS}
TEXTS = draw_texts(12)


def survey_in(family: str, convention: str, sizes: list[int], left: bool, extra: int) -> HeadTable:
    """Survey the texts in batches of these sizes (repeated), padded on one side."""
    batches, start, turn = [], 0, 0
    while start < len(TEXTS):
        size = sizes[turn % len(sizes)]
        batches.append(batch_of(TEXTS[start : start + size], KINDS[family], left, extra))
        start, turn = start + size, turn + 1
    return table_of(SUBJECTS[family], tally_up(SUBJECTS[family], batches, convention), convention)


def assert_equal(one: HeadTable, other: HeadTable) -> None:
    for mine, theirs in ((one.frame, other.frame), (one.low, other.low), (one.high, other.high)):
        assert list(mine.columns) == list(theirs.columns)
        np.testing.assert_allclose(mine.to_numpy(), theirs.to_numpy(), atol=2e-5, rtol=2e-5)
    assert one.notes == other.notes


@pytest.mark.parametrize("family", KINDS)
@pytest.mark.parametrize("convention", ["headcount", "paper", "code"])
def test_batch_size_padding_side_and_length_never_show(family: str, convention: str) -> None:
    alone = survey_in(family, convention, [1], left=False, extra=0)
    # Marian and BART count positions from the left edge, so padding stands on the right there
    left = KINDS[family] != "enc-dec"
    for sizes, side, extra in (([12], False, 0), ([5], False, 3), ([4], left, 2)):
        assert_equal(alone, survey_in(family, convention, sizes, side, extra))


@settings(max_examples=15, deadline=None)
@given(st.lists(st.integers(1, 7), min_size=1, max_size=4), st.integers(0, 4))
def test_any_cut_into_batches_gives_the_same_numbers(sizes: list[int], extra: int) -> None:
    whole = survey_in("marian", "headcount", [12], left=False, extra=0)
    assert_equal(whole, survey_in("marian", "headcount", sizes, left=False, extra=extra))


@settings(max_examples=10, deadline=None)
@given(st.integers(1, 11))
def test_split_anywhere_and_merge(cut: int) -> None:
    subject = SUBJECTS["marian"]
    parts = [
        tally_up(subject, [batch_of(texts, "enc-dec")], "headcount")
        for texts in (TEXTS[:cut], TEXTS[cut:])
    ]
    for mine, theirs in zip(*parts, strict=True):
        mine.merge(theirs)
    whole = tally_up(subject, [batch_of(TEXTS, "enc-dec")], "headcount")
    assert_equal(table_of(subject, parts[0], "headcount"), table_of(subject, whole, "headcount"))


def test_merging_into_an_empty_tally() -> None:
    subject = SUBJECTS["bert"]
    full = tally_up(subject, [batch_of(TEXTS, "enc")], "headcount")
    empty = tally_up(subject, [], "headcount")
    for mine, theirs in zip(empty, full, strict=True):
        mine.merge(theirs)
    assert_equal(table_of(subject, empty, "headcount"), table_of(subject, full, "headcount"))
