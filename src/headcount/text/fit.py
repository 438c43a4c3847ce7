"""Rows made to fit the model: windows, truncation, and what is skipped."""

from __future__ import annotations

from dataclasses import dataclass, replace

from headcount.errors import InputError
from headcount.text.account import EncodeReport
from headcount.text.alignment import Placed
from headcount.text.rows import Row, content_length, shorten, windows

__all__ = ["Example", "Fit"]


@dataclass(frozen=True, slots=True)
class Example:
    """One row of a batch to be: the input, and for an encoder-decoder the labels."""

    index: int
    row: Row
    labels: Row | None = None
    window: int = 0
    #: The words of the input and of the labels, where they are known.
    words: Placed | None = None
    label_words: Placed | None = None

    @property
    def rows(self) -> list[Row]:
        """The input and, where there are any, the labels."""
        return [self.row] if self.labels is None else [self.row, self.labels]


@dataclass(frozen=True)
class Fit:
    """Gives the rows of an item that the model can take: none, one, or several windows."""

    limit: int | None
    label_limit: int | None
    #: What happens to a sentence that is too long: "window", "truncate" or "error".
    long: str
    #: Whether an item is two texts; then a long one is truncated, for windows would tear it.
    paired: bool

    def __call__(self, example: Example, name: str, report: EncodeReport) -> list[Example]:
        """The example's rows, with every change counted; `name` is the item's in an error."""
        lengths = [content_length(row) for row in example.rows]
        if min(lengths) == 0:
            report.empty += 1
            return []
        report.single += lengths[0] == 1
        if not self._over(example.row, self.limit) and not self._over(
            example.labels, self.label_limit
        ):
            return [example]
        return self._fitted(example, name, report)

    def _fitted(self, example: Example, name: str, report: EncodeReport) -> list[Example]:
        if self.long == "error":
            raise self._too_long(example, name)
        if self.long == "truncate" or self.paired:
            report.truncated += 1
            return [self._truncated(example)]
        assert self.limit is not None  # or the row would not be over it
        pieces = windows(example.row, self.limit)
        report.windowed += 1
        report.windows += len(pieces)
        return [replace(example, row=piece, window=number) for number, piece in enumerate(pieces)]

    def _truncated(self, example: Example) -> Example:
        return replace(
            example,
            row=self._short(example.row, self.limit),
            labels=example.labels and self._short(example.labels, self.label_limit),
        )

    def _short(self, row: Row, limit: int | None) -> Row:
        return shorten(row, limit) if limit is not None and self._over(row, limit) else row

    def _over(self, row: Row | None, limit: int | None) -> bool:
        return row is not None and limit is not None and len(row.ids) > limit

    def _too_long(self, example: Example, name: str) -> InputError:
        row, limit = example.row, self.limit
        if not self._over(row, limit):
            assert example.labels is not None  # or nothing would be too long
            row, limit = example.labels, self.label_limit
        return InputError(
            f"{name} has {len(row.ids)} tokens and the model takes {limit}; shorten it, or use "
            "long='window' or long='truncate' (--long)."
        )
