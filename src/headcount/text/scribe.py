"""Texts written as rows of token ids, by any tokenizer, left as it was found."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from headcount.errors import UsageError
from headcount.text.account import EncodeReport
from headcount.text.chat import Frame, frame_of, render
from headcount.text.places import (
    fast_places,
    must_give_places,
    sentencepiece_rows,
    still_placed,
)
from headcount.text.rows import Row
from headcount.text.specials import lookalikes, special_ids, spelt_out
from headcount.text.untouched import untouched

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

__all__ = ["Scribe"]

_SURROGATE = re.compile("[\ud800-\udfff]")


class Scribe:
    """Writes texts as `Row`s with one tokenizer, and keeps the account.

    With `markup` a special token written in a text, such as ``[MASK]``, is taken as such;
    otherwise it is text like any other. With `places` rows tell where their tokens stand.
    """

    def __init__(
        self,
        tokenizer: PreTrainedTokenizerBase,
        account: EncodeReport,
        *,
        markup: bool = False,
        places: bool = False,
    ) -> None:
        if places:
            must_give_places(tokenizer)
        self._places = places
        self._tokenizer = tokenizer
        self._account = account
        self._markup = markup
        self._specials = special_ids(tokenizer)
        self._spelling: dict[int, list[int]] = {}

    def rows(
        self,
        texts: Sequence[str],
        seconds: Sequence[str] | None = None,
        *,
        target: bool = False,
    ) -> list[Row]:
        """A row a text (or a text and its second text), as the tokenizer wraps it."""
        written = [self._mend(text) for text in texts]
        behind = None if seconds is None else [self._mend(text) for text in seconds]
        if target:
            _must_know_language(self._tokenizer)
        with untouched(self._tokenizer):
            rows = self._ask(written, behind, target, self._tokenizer.is_fast)
            if not self._markup:
                self._reread(rows, written, behind, target)
            rows = [_aligned(row) for row in rows] if self._markup else rows
            if self._places and not self._tokenizer.is_fast:
                both = zip(written, behind, strict=True) if behind else zip(written, strict=True)
                rows = sentencepiece_rows(self._tokenizer, rows, [*both], target=target)
        if self._places and self._account.mended:
            rows = still_placed(rows, [*texts, *(seconds or ())], [*written, *(behind or ())])
        return rows if self._markup else [self._plain(row) for row in rows]

    def chat_rows(self, texts: Sequence[str]) -> list[Row]:
        """A row a text, rendered as one user turn of the tokenizer's chat template."""
        frame = frame_of(self._tokenizer)
        rendered = [render(self._tokenizer, self._mend(text)) for text in texts]
        offsets = {"return_offsets_mapping": True} if self._tokenizer.is_fast else {}
        with untouched(self._tokenizer):
            found = self._tokenizer(
                rendered,
                add_special_tokens=False,
                verbose=False,
                split_special_tokens=False,
                **offsets,
            )
        places = found.get("offset_mapping") or [None] * len(rendered)
        marked = zip(texts, rendered, found["input_ids"], places, strict=True)
        rows = [self._chat_row(frame, *one) for one in marked]
        return rows if self._markup else [self._plain(row) for row in rows]

    def _chat_row(
        self,
        frame: Frame,
        text: str,
        rendered: str,
        ids: list[int],
        places: list[tuple[int, int]] | None,
    ) -> Row:
        start, end = frame.content(rendered)
        inside = [start <= place[0] < end for place in places] if places else [False] * len(ids)
        special = [
            int(number in self._specials and not within)
            for number, within in zip(ids, inside, strict=True)
        ]
        own = frame.places(text, rendered, places) if self._places and places else None
        return Row(ids, special, places=own)

    def _ask(
        self,
        texts: Sequence[str],
        seconds: Sequence[str] | None,
        target: bool,
        split: bool,
    ) -> list[Row]:
        offsets = self._places and self._tokenizer.is_fast
        found = self._tokenizer(
            **{"text_target" if target else "text": texts},
            text_pair=seconds,
            return_offsets_mapping=offsets,
            return_special_tokens_mask=True,
            return_attention_mask=False,
            split_special_tokens=split and not self._markup,
            verbose=False,
        )
        types = found.get("token_type_ids") or [None] * len(texts)
        places = [
            fast_places(found, number, len(text) + 1) if offsets else None
            for number, text in enumerate(texts)
        ]
        cells = zip(found["input_ids"], found["special_tokens_mask"], types, places, strict=True)
        return [Row(*each) for each in cells]

    def _reread(
        self,
        rows: list[Row],
        texts: Sequence[str],
        seconds: Sequence[str] | None,
        target: bool,
    ) -> None:
        """Read again, with special tokens split, what a Python tokenizer took for special.

        Not everything at once: some of them (ESM) need the same switch to find any token.
        """
        if self._tokenizer.is_fast:
            return
        usual = self._tokenizer.num_special_tokens_to_add(pair=seconds is not None)
        for place, row in enumerate(rows):
            if _is_odd(row, usual) or lookalikes(row, self._specials):
                second = None if seconds is None else seconds[place : place + 1]
                again = self._ask(texts[place : place + 1], second, target, True)
                rows[place] = again[0]

    def _plain(self, row: Row) -> Row:
        """The row with look-alikes of special tokens spelt out."""
        count = lookalikes(row, self._specials)
        if not count:
            return row
        self._account.lookalikes += count
        for number in self._specials.intersection(row.ids) - self._spelling.keys():
            self._spelling[number] = self._letters(number)
        return spelt_out(row, self._spelling)

    def _letters(self, number: int) -> list[int]:
        """The ids of the characters of a special token's name."""
        name = self._tokenizer.convert_ids_to_tokens(number)
        letters = [self._tokenizer.convert_tokens_to_ids(letter) for letter in name]
        unknown = self._tokenizer.unk_token_id
        kept = [unknown if found is None else found for found in letters]
        return [found for found in kept if found is not None]

    def _mend(self, text: str) -> str:
        """The text with halves of surrogate pairs joined, or replaced where alone."""
        if _SURROGATE.search(text) is None:
            return text
        self._account.mended += 1
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _is_odd(row: Row, usual: int) -> bool:
    """Whether special places were read off the text: too many, or no longer one a token."""
    return len(row.special) != len(row.ids) or sum(row.special) > usual


def _aligned(row: Row) -> Row:
    """The row with a place a token: ByT5 adds no end to a text that has one, but counts it."""
    return replace(row, special=row.special[len(row.special) - len(row.ids) :])


def _must_know_language(tokenizer: PreTrainedTokenizerBase) -> None:
    """Refuse a multilingual tokenizer that would silently write the target as the source."""
    if getattr(tokenizer, "tgt_lang", "none needed") is None:
        raise UsageError(
            f"{type(tokenizer).__name__} does not know the target language; set "
            "tokenizer.tgt_lang (and src_lang), e.g. tokenizer.tgt_lang = 'de_DE'."
        )
