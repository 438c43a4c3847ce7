"""SentencePiece models in Python give the span of every piece in the text as it was before their
normalisation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from headcount.text import TokenRow, unplaced


def sentencepiece_rows(
    tokenizer: Any,
    rows: Sequence[TokenRow],
    texts: Sequence[Sequence[str]],
    *,
    target: bool = False,
) -> list[TokenRow]:
    """The rows with their places by the tokenizer's SentencePiece model; a row has a text or two.

    The tokens must be the very ones that the model gives for the text, read in one go or around
    the words that a user added to the vocabulary. Where a tokenizer did something else with the
    text, the places stay unknown.
    """
    with _turned(tokenizer, target):
        return [_row(tokenizer, row, each, target) for row, each in zip(rows, texts, strict=True)]


def _row(tokenizer: Any, row: TokenRow, texts: Sequence[str], target: bool) -> TokenRow:
    own = [number for number, added in zip(row.ids, row.special, strict=True) if not added]
    for split in (_whole, _around_added):
        ids, places = _read(tokenizer, [split(tokenizer, text) for text in texts], target)
        if ids == own:
            rest = iter(places)
            return replace(row, places=[None if added else next(rest) for added in row.special])
    return unplaced(row)


#: A text in parts; True for a part that is one token.
Parts = list[tuple[str, bool]]


def _whole(tokenizer: Any, text: str) -> Parts:
    """The text, without the language code that some take off its front (Marian's ``>>de<<``)."""
    remove = getattr(tokenizer, "remove_language_code", None)
    rest = text if remove is None else remove(text)[1]
    code = text[: len(text) - len(rest)]
    return [(code, True), (rest, False)] if code else [(rest, False)]


def _around_added(tokenizer: Any, text: str) -> Parts:
    """The text cut where it holds words that were added to the vocabulary."""
    added = {*tokenizer.get_added_vocab(), *tokenizer.all_special_tokens}
    return [
        part
        for cut in tokenizer.tokens_trie.split(text)
        for part in ([(cut, True)] if cut in added else _whole(tokenizer, cut))
    ]


def _added(tokenizer: Any) -> set[str]:
    return {*tokenizer.get_added_vocab(), *tokenizer.all_special_tokens}


def _read(
    tokenizer: Any, texts: Sequence[Parts], target: bool
) -> tuple[list[int], list[tuple[int, int]]]:
    """Ids and places of all texts, each counting on from the one before."""
    model, here = _model(tokenizer, target), 0
    pieces: list[str] = []
    places: list[tuple[int, int]] = []
    for parts in texts:
        for part, alone in parts:
            found: Any = {"pieces": [part], "offsets": [(0, len(part))]}
            if not alone:
                found = model.encode(part, return_type="offset_mapping")
            pieces += found["pieces"]
            places += [(here + first, here + last) for first, last in found["offsets"]]
            here += len(part)
        here += 1
    return tokenizer.convert_tokens_to_ids(pieces) if pieces else [], places


def _alone(part: str) -> dict[str, Any]:
    return {"pieces": [part], "offsets": [(0, len(part))]}


def _model(tokenizer: Any, target: bool) -> Any:
    """The SentencePiece model of a side; None if the tokenizer has none."""
    name = "spm_target" if target else "spm_source"
    found = getattr(tokenizer, name, None) or getattr(tokenizer, "sp_model", None)
    return found if hasattr(found, "encode") else None


@contextmanager
def _turned(tokenizer: Any, target: bool) -> Iterator[None]:
    """The tokenizer turned to its target side for a while: some have a vocabulary a side."""
    if not target:
        yield
        return
    getattr(tokenizer, "_switch_to_target_mode", lambda: None)()
    try:
        yield
    finally:
        getattr(tokenizer, "_switch_to_input_mode", lambda: None)()


def has_model(tokenizer: Any) -> bool:
    """Whether a tokenizer has such a model."""
    return _model(tokenizer, target=False) is not None
