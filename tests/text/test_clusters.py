from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from headcount.errors import Fault
from headcount.text.sentence import Span, checked_clusters, inside


def test_clusters_come_in_the_order_of_their_first_mentions() -> None:
    skipped: Counter[str] = Counter()
    found = checked_clusters([[[8, 9], [2, 2]], [[5, 6], [0, 3]]], 10, "Text", skipped)
    assert found == ((Span(0, 3), Span(5, 6)), (Span(2, 2), Span(8, 9)))
    assert not skipped


def test_nested_and_crossing_mentions_are_kept() -> None:
    skipped: Counter[str] = Counter()
    found = checked_clusters([[[0, 3], [2, 5]], [[1, 1]]], 6, "Text", skipped)
    assert found == ((Span(0, 3), Span(2, 5)), (Span(1, 1),))
    assert not skipped


FAULTS: list[tuple[Any, str, str]] = [
    ([[[0, 1], [0, 6]]], "has the mention [0, 6]", "mentions outside the text"),
    ([[[0, 1], [-1, 0]]], "has the mention [-1, 0]", "mentions outside the text"),
    ([[[0, 1], [3, 2]]], "has the mention [3, 2]", "mentions outside the text"),
    ([[[0, 1], [1]]], "has the mention [1]", "mentions outside the text"),
    ([[[0, 1], [1.0, 2]]], "has the mention [1.0, 2]", "mentions outside the text"),
    ([[[0, 1], "ab"]], "has the mention ab", "mentions outside the text"),
    ([[[0, 1], 7]], "has the mention 7", "mentions outside the text"),
    ([[[0, 1], [0, 1]]], "has the mention [0, 1] twice", "mentions given twice"),
    ([[[0, 1]], [[0, 1]]], "in two clusters; a mention means one", "mentions in two clusters"),
]


@pytest.mark.parametrize(("clusters", "said", "reason"), FAULTS)
def test_mentions_that_cannot_be(clusters: Any, said: str, reason: str) -> None:
    skipped: Counter[str] = Counter()
    assert checked_clusters(clusters, 6, "Text 1", skipped) == ((Span(0, 1),),)
    assert skipped == {reason: 1}
    with pytest.raises(Fault) as caught:
        checked_clusters(clusters, 6, "Text 1", skipped, strict=True)
    assert str(caught.value).startswith("Text 1 ")
    assert said in str(caught.value)


def test_only_whole_mentions_are_inside() -> None:
    clusters = ((Span(0, 1), Span(4, 5)), (Span(2, 3),), (Span(5, 6),))
    assert inside(clusters, 2, 4) == ((Span(2, 3),), (Span(0, 1),))
