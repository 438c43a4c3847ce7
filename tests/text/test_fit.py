from __future__ import annotations

import pytest

from headcount.errors import InputError
from headcount.text.batch import EncodedExample, Fit
from headcount.text.spans import EncodeReport, TokenRow


def row(content: int) -> TokenRow:
    return TokenRow([1, *range(10, 10 + content), 2], [1, *[0] * content, 1])


def fitted(
    example: EncodedExample, limit: int | None = 6, long: str = "window", paired: bool = False
) -> tuple[list[EncodedExample], EncodeReport]:
    report = EncodeReport()
    fit = Fit(limit, limit, long, paired)
    return fit(example, "Item 3 of c.txt (line 4)", report), report


def test_what_fits_passes() -> None:
    example = EncodedExample(0, row(4))
    found, report = fitted(example)
    assert found == [example]
    assert report == EncodeReport()
    assert fitted(EncodedExample(0, row(400)), limit=None)[0][0].row == row(400)


def test_windows() -> None:
    found, report = fitted(EncodedExample(5, row(9)))
    assert [(example.index, example.window) for example in found] == [(5, 0), (5, 1), (5, 2)]
    assert [len(example.row.ids) for example in found] == [6, 6, 3]
    assert (report.windowed, report.windows, report.truncated) == (1, 3, 0)


def test_truncation() -> None:
    found, report = fitted(EncodedExample(5, row(9)), long="truncate")
    assert [example.row for example in found] == [row(4)]
    assert (report.windowed, report.truncated) == (0, 1)


def test_pairs_are_truncated_not_torn() -> None:
    found, report = fitted(EncodedExample(5, row(9), row(30)), paired=True)
    assert found == [EncodedExample(5, row(4), row(4))]
    assert report.truncated == 1, "one pair, though both of its sides lost tokens"
    found, report = fitted(EncodedExample(5, row(2), row(30)), paired=True)
    assert found == [EncodedExample(5, row(2), row(4))]


def test_an_error_names_item_and_lengths() -> None:
    with pytest.raises(InputError) as caught:
        fitted(EncodedExample(2, row(9)), long="error")
    assert str(caught.value) == (
        "Item 3 of c.txt (line 4) has 11 tokens and the model takes 6; shorten it, or use "
        "long='window' or long='truncate' (--long)."
    )
    with pytest.raises(InputError, match="has 32 tokens and the model takes 6"):
        fitted(EncodedExample(2, row(1), row(30)), long="error", paired=True)


def test_a_side_without_tokens_is_skipped() -> None:
    assert fitted(EncodedExample(0, row(0)))[0] == []
    found, report = fitted(EncodedExample(0, row(3), row(0)))
    assert found == []
    assert (report.empty, report.single) == (1, 0)


def test_single_tokens_are_kept_and_counted() -> None:
    found, report = fitted(EncodedExample(0, row(1)))
    assert len(found) == 1
    assert report.single == 1
