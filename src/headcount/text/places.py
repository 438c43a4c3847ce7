"""Where each token stands in its text, as the tokenizer itself says, never guessed from spelling.

Fast tokenizers give offsets. SentencePiece models in Python give the span of every piece in the
text as it was before their normalisation. Other Python tokenizers say nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from headcount.errors import InputError
from headcount.text.rows import Place, Row

if TYPE_CHECKING:
    from transformers import BatchEncoding, PreTrainedTokenizerBase

__all__ = ["fast_places", "gives_places", "must_give_places", "sentencepiece_places"]


def gives_places(tokenizer: PreTrainedTokenizerBase) -> bool:
    """Whether a tokenizer tells where its tokens stand."""
    return tokenizer.is_fast or _model(tokenizer, target=False) is not None


def must_give_places(tokenizer: PreTrainedTokenizerBase) -> None:
    """Refuse a tokenizer that does not tell where its tokens stand."""
    if not gives_places(tokenizer):
        raise InputError(
            f"{type(tokenizer).__name__} does not tell where its tokens stand in the text, so "
            "words cannot be found; use the model's fast tokenizer (use_fast=True)."
        )


def fast_places(found: BatchEncoding, number: int, second: int) -> list[Place]:
    """The places of one row of a fast tokenizer; `second` is where a second text begins."""
    shifts = {None: None, 0: 0, 1: second}
    ordered = zip(found["offset_mapping"][number], found.sequence_ids(number), strict=True)
    return [_moved(place, shifts[text]) for place, text in ordered]


def sentencepiece_places(
    tokenizer: PreTrainedTokenizerBase, row: Row, texts: Sequence[str], *, target: bool = False
) -> Row:
    """The row with its places by the tokenizer's SentencePiece model.

    The tokens must be the very ones that the model gives for the text; where a tokenizer did
    something else with it, the places stay unknown.
    """
    with _turned(tokenizer, target):
        ids, places = _read(tokenizer, texts, target)
    own = [number for number, added in zip(row.ids, row.special, strict=True) if not added]
    if own != ids:
        return replace(row, places=[None] * len(row.ids))
    rest = iter(places)
    return replace(row, places=[None if added else next(rest) for added in row.special])


def _read(
    tokenizer: Any, texts: Sequence[str], target: bool
) -> tuple[list[int], list[tuple[int, int]]]:
    """Ids and places of all texts, each counting on from the one before."""
    model, start = _model(tokenizer, target), 0
    pieces: list[str] = []
    places: list[tuple[int, int]] = []
    for text in texts:
        code = _language_code(tokenizer, text)
        pieces += [text[:code]] * (code > 0)
        places += [(start, start + code)] * (code > 0)
        found = model.encode(text[code:], return_type="offset_mapping")
        pieces += found["pieces"]
        places += [(start + code + first, start + code + last) for first, last in found["offsets"]]
        start += len(text) + 1
    return tokenizer.convert_tokens_to_ids(pieces) if pieces else [], places


def _model(tokenizer: Any, target: bool) -> Any:
    """The SentencePiece model of a side; None if the tokenizer has none."""
    name = "spm_target" if target else "spm_source"
    found = getattr(tokenizer, name, None) or getattr(tokenizer, "sp_model", None)
    return found if hasattr(found, "encode") else None


def _language_code(tokenizer: Any, text: str) -> int:
    """How long the language code is that a tokenizer takes off the text (Marian's ``>>de<<``)."""
    remove = getattr(tokenizer, "remove_language_code", None)
    return 0 if remove is None else len(text) - len(remove(text)[1])


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


def _moved(place: tuple[int, int], shift: int | None) -> Place:
    return None if shift is None else (place[0] + shift, place[1] + shift)
