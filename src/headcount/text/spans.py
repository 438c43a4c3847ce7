"""The account that encoding gives of itself: what was read, cut, skipped and mended."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import compress, groupby
from typing import TYPE_CHECKING, TypeVar

from headcount import plugins
from headcount.errors import InputError, UsageError

if TYPE_CHECKING:
    from transformers import BatchEncoding, PreTrainedTokenizerBase


# --- One tokenised text, or two, before padding, and how a long one is cut ----------------------

#: Where a token stands in its text, in characters; None for a token that is in no text.
Place = tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class TokenRow:
    """Token ids, which of them the tokenizer added, and token types where it gives them.

    `places`, where they were asked for, say which characters each token stands for; a second
    text counts on from the first, with one character between them.
    """

    ids: Sequence[int]
    special: Sequence[int]
    types: Sequence[int] | None = None
    places: Sequence[Place] | None = None


def content_length(row: TokenRow) -> int:
    """How many tokens come from the text itself.

    >>> content_length(TokenRow([101, 7, 8, 102], [1, 0, 0, 1]))
    2
    """
    return len(row.ids) - sum(row.special)


def windows(row: TokenRow, limit: int) -> list[TokenRow]:
    """Consecutive pieces of at most `limit` tokens, each between the row's own specials.

    >>> [piece.ids for piece in windows(TokenRow([101, 5, 6, 7, 102], [1, 0, 0, 0, 1]), 4)]
    [[101, 5, 6, 102], [101, 7, 102]]
    """
    if len(row.ids) <= limit:
        return [row]
    lead, tail = _frame(row.special)
    room = _room(limit, lead + tail)
    end = len(row.ids) - tail
    before, after = range(lead), range(end, len(row.ids))
    return [
        _take(row, [*before, *range(start, min(start + room, end)), *after])
        for start in range(lead, end, room)
    ]


def shorten(row: TokenRow, limit: int) -> TokenRow:
    """The row cut to `limit` tokens: specials stay, the longest text loses its end first.

    >>> shorten(TokenRow([101, 5, 6, 7, 102, 8, 102], [1, 0, 0, 0, 1, 0, 1]), 6).ids
    [101, 5, 6, 102, 8, 102]
    """
    runs = [
        [place for place, _ in run]
        for special, run in groupby(enumerate(row.special), key=lambda pair: pair[1])
        if not special
    ]
    room = _room(limit, sum(row.special), len(runs))
    kept = {
        place for run, size in zip(runs, _shares(runs, room), strict=True) for place in run[:size]
    }
    places = [place for place, special in enumerate(row.special) if special or place in kept]
    return _take(row, places)


def _frame(special: Sequence[int]) -> tuple[int, int]:
    """How many specials stand before the first and after the last token of the text."""
    texts = [place for place, added in enumerate(special) if not added]
    return texts[0], len(special) - 1 - texts[-1]


def _room(limit: int, specials: int, needed: int = 1) -> int:
    if limit - specials < needed:
        raise UsageError(
            f"A length of {limit} leaves no room for text beside {specials} special tokens; "
            f"use {specials + needed} or more."
        )
    return limit - specials


def _shares(runs: Sequence[Sequence[int]], room: int) -> list[int]:
    """How much each text keeps: short ones all, long ones an even share of what is left."""
    shares = [0] * len(runs)
    order = sorted(range(len(runs)), key=lambda number: len(runs[number]))
    for done, number in enumerate(order):
        shares[number] = min(len(runs[number]), room // (len(runs) - done))
        room -= shares[number]
    return shares


def _take(row: TokenRow, places: Sequence[int]) -> TokenRow:
    def at(values: Sequence[T]) -> list[T]:
        return [values[place] for place in places]

    return replace(
        row,
        ids=at(row.ids),
        special=at(row.special),
        types=None if row.types is None else at(row.types),
        places=None if row.places is None else at(row.places),
    )


# --- Where each token stands in its text --------------------------------------------------------
# Fast tokenizers give offsets. SentencePiece models in Python give the span of every piece in the
# text as it was before their normalisation. Other Python tokenizers say nothing.


def gives_places(tokenizer: PreTrainedTokenizerBase) -> bool:
    """Whether a tokenizer gives the places of its tokens."""
    room = plugins.part("sentencepiece")
    return tokenizer.is_fast or (room is not None and room.has_model(tokenizer))


def must_give_places(tokenizer: PreTrainedTokenizerBase) -> None:
    """Refuse a tokenizer that does not give the places of its tokens."""
    if not gives_places(tokenizer):
        raise InputError(
            f"{type(tokenizer).__name__} does not give the places of its tokens in the text, so "
            "words cannot be found; use the model's fast tokenizer (use_fast=True)."
        )


def fast_places(found: BatchEncoding, number: int, second: int) -> list[Place]:
    """The places of one row of a fast tokenizer; `second` is where a second text begins."""
    shifts = {None: None, 0: 0, 1: second}
    ordered = zip(found["offset_mapping"][number], found.sequence_ids(number), strict=True)
    return [
        None if (shift := shifts[text]) is None else (first + shift, last + shift)
        for (first, last), text in ordered
    ]


def still_placed(
    rows: Sequence[TokenRow], texts: Sequence[str], mended: Sequence[str]
) -> list[TokenRow]:
    """The rows without the places of texts that mending made shorter: those are others now.

    First texts come first in `texts`, then the second ones.
    """
    moved = {
        number % len(rows)
        for number, (text, now) in enumerate(zip(texts, mended, strict=True))
        if len(text) != len(now)
    }
    return [unplaced(row) if number in moved else row for number, row in enumerate(rows)]


def unplaced(row: TokenRow) -> TokenRow:
    """The row without a place for any token."""
    return replace(row, places=[None] * len(row.ids))


# --- A tokenizer put back as it was after use ---------------------------------------------------


@contextmanager
def untouched(tokenizer: PreTrainedTokenizerBase) -> Iterator[None]:
    """Restore a tokenizer on any exit: truncation, padding, splitting, and its source mode."""
    backend = tokenizer.backend_tokenizer if tokenizer.is_fast else None
    if backend is not None:
        truncation, padding = backend.truncation, backend.padding
        splitting = backend.encode_special_tokens
    try:
        yield
    except BaseException:
        # A call that failed while it wrote a target leaves a translator's tokenizer turned round.
        getattr(tokenizer, "_switch_to_input_mode", lambda: None)()
        raise
    finally:
        if backend is not None:
            backend.no_truncation()
            if truncation is not None:
                backend.enable_truncation(**truncation)
            backend.no_padding()
            if padding is not None:
                backend.enable_padding(**padding)
            backend.encode_special_tokens = splitting


# --- Special tokens -----------------------------------------------------------------------------
# Whether a *place* is special is the tokenizer's word (its special-tokens mask), never the look of
# the token: a sentence that holds "</s>" or "[SEP]" makes no separator. Fast Unigram tokenizers and
# the Python WordPiece nevertheless give such a text the id of the real thing; here it is spelt out.

T = TypeVar("T")


def special_ids(tokenizer: PreTrainedTokenizerBase) -> frozenset[int]:
    """Every id that means something to the model rather than text; the unknown token is text."""
    named = set(tokenizer.all_special_ids)
    added = {number for number, token in tokenizer.added_tokens_decoder.items() if token.special}
    return frozenset((named | added) - {tokenizer.unk_token_id})


def separator_ids(tokenizer: PreTrainedTokenizerBase) -> tuple[int, ...]:
    """The separator's id: the tokenizer's own separator, else its end of sentence, else none."""
    known = (tokenizer.sep_token_id, tokenizer.eos_token_id)
    return tuple(number for number in known if number is not None)[:1]


def lookalikes(row: TokenRow, specials: frozenset[int]) -> int:
    """How many tokens of the text itself carry a special id."""
    known = specials.__contains__
    return sum(map(known, row.ids)) - sum(map(known, compress(row.ids, row.special)))


def spelt_out(row: TokenRow, spelling: Mapping[int, list[int]]) -> TokenRow:
    """The row with each look-alike replaced by the ids of its characters.

    >>> spelt_out(TokenRow([1, 5, 2, 2], [1, 0, 0, 1]), {2: [60, 47]}).ids
    [1, 5, 60, 47, 2]
    """
    ids: list[int] = []
    special: list[int] = []
    counts: list[int] = []
    for number, added in zip(row.ids, row.special, strict=True):
        letters = [number] if added else spelling.get(number, [number])
        ids += letters
        special += [added] * len(letters)
        counts.append(len(letters))
    return replace(
        row,
        ids=ids,
        special=special,
        types=None if row.types is None else _repeated(row.types, counts),
        places=None if row.places is None else _repeated(row.places, counts),
    )


def _repeated(values: Sequence[T], counts: Sequence[int]) -> list[T]:
    """Each value as often as its count says: the letters of a look-alike share its place."""
    return [value for value, count in zip(values, counts, strict=True) for _ in range(count)]


# --- The account that encoding gives of itself --------------------------------------------------


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
    #: Rows of which some queries stand for all.
    sampled: int = 0
    #: Texts read whole although a sample was asked for: words need all queries.
    unsampled: int = 0
    #: How often memory ran out and the work went on in smaller pieces.
    smaller: int = 0
    #: How attention was read, by the name of the path, in calls.
    paths: Counter[str] = field(default_factory=Counter)

    def add(self, other: EncodeReport) -> None:
        """Take in the counts of another part of the corpus."""
        for name, count in vars(other).items():
            setattr(self, name, getattr(self, name) + count)

    def sentences_in_words(self) -> list[str]:
        """What a user should know, a sentence each; empty if there is nothing."""
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
            (
                self.sampled,
                f"Of {_plural(self.sampled, 'long row')} a sample of queries stands for all.",
            ),
            (
                self.unsampled,
                "All queries were read, not a sample (--reading rows=): what is read between words "
                "or heads, and patterns, need all of them.",
            ),
            (
                self.smaller,
                f"Memory ran out {_plural(self.smaller, 'time')}; the work went on in smaller "
                "batches or tiles.",
            ),
        ]
        return [sentence for count, sentence in told if count]


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _was(count: int) -> str:
    return "was" if count == 1 else "were"
