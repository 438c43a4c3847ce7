"""The account that encoding gives of itself: what was read, cut, skipped and mended."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

__all__ = ["EncodeReport"]


@dataclass
class EncodeReport:
    """Counts of one pass; complete when the last batch has been taken.

    >>> EncodeReport(sentences=9, rows=8, empty=1).sentences_in_words()
    ['1 of 9 sentences had no token and was skipped.']
    """

    #: Sentences or pairs read.
    sentences: int = 0
    #: Rows given to the model; a window is a row.
    rows: int = 0
    #: Real tokens by side, special ones included.
    tokens: Counter[str] = field(default_factory=Counter)
    #: Sentences or pairs that lost tokens.
    truncated: int = 0
    #: Sentences cut into windows, and the windows they gave.
    windowed: int = 0
    windows: int = 0
    #: Sentences or pairs with a side that has no token of its own: skipped.
    empty: int = 0
    #: Texts of one token, specials not counted: kept.
    single: int = 0
    #: Tokens of the text that looked like special ones and were spelt out.
    lookalikes: int = 0
    #: Texts with half a surrogate pair, which was replaced by U+FFFD.
    mended: int = 0
    #: Words of annotated sentences.
    words: int = 0
    #: Words without a token: the tokenizer left their characters out.
    unplaced: int = 0
    #: Words that lost a token where a sentence was cut, or stand across the edge of two windows.
    cut: int = 0
    #: Words that have a token in common with another word: multiword tokens, wide tokens.
    shared: int = 0

    def sentences_in_words(self) -> list[str]:
        """What a user should know, a sentence each; empty when all went plainly."""
        of = f"of {_plural(self.sentences, 'sentence')}"
        words = f"of {_plural(self.words, 'word')}"
        told = [
            (self.empty, f"{self.empty} {of} had no token and {_was(self.empty)} skipped."),
            (
                self.windowed,
                f"{self.windowed} {of} {_was(self.windowed)} too long and gave "
                f"{_plural(self.windows, 'window')}.",
            ),
            (
                self.truncated,
                f"{self.truncated} {of} {_was(self.truncated)} too long and lost the end.",
            ),
            (
                self.lookalikes,
                f"{_plural(self.lookalikes, 'token')} in the text looked special and "
                f"{_was(self.lookalikes)} spelt out.",
            ),
            (self.unplaced, f"{self.unplaced} {words} had no token."),
            (self.cut, f"{self.cut} {words} lost a token where a sentence was cut."),
            (self.shared, f"{self.shared} {words} shared a token with another word."),
            (self.mended, f"{_plural(self.mended, 'text')} held half a character (U+FFFD now)."),
        ]
        return [sentence for count, sentence in told if count]


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _was(count: int) -> str:
    return "was" if count == 1 else "were"
