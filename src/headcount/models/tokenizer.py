"""The tokenizer of a model: the one beside it, or the one of another folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from transformers import AutoTokenizer, PreTrainedTokenizerBase

from headcount.errors import ModelError
from headcount.models.explain import first_line
from headcount.models.find import Found, find
from headcount.models.hub import Listing, options_for

__all__ = ["open_tokenizer"]

_STARTS = ("tokenizer", "vocab", "merges", "sentencepiece")
_ENDS = (".model", ".spm", ".tiktoken", ".gguf")
_NO_FILES = "no tokenizer: there are no tokenizer files beside the model."


def open_tokenizer(
    found: Found, options: dict[str, Any], listing: Listing, other: str | None = None
) -> tuple[PreTrainedTokenizerBase | None, list[str]]:
    """The tokenizer beside a model, or that of another folder; or none and a note that says why."""
    if other is not None:
        return _tokenizer_at(other, options["trust_remote_code"]), []
    try:
        tokenizer = AutoTokenizer.from_pretrained(found.location, **options)
    except Exception as error:
        return None, [f"no tokenizer: {first_line(error)}" if _has_files(listing) else _NO_FILES]
    return (None, [_NO_FILES]) if _is_empty(tokenizer) else (tokenizer, [])


def _tokenizer_at(path: str, trusted: bool) -> PreTrainedTokenizerBase:
    """The tokenizer of another folder, GGUF file, model of ours or hub id."""
    folder = Path(path).expanduser()
    plain = folder.is_dir() and not any(folder.glob("*.gguf"))
    where = Found("folder", str(folder), path, path) if plain else find(path)
    tokenizer, notes = open_tokenizer(where, *options_for(where, trusted))
    if tokenizer is None:
        raise ModelError(f"'{path}' gives no tokenizer: {notes[0].removeprefix('no tokenizer: ')}")
    return tokenizer


def _has_files(listing: Listing) -> bool:
    """Whether anything beside the model looks like a tokenizer's."""
    return any(name.startswith(_STARTS) or name.endswith(_ENDS) for name in listing.files)


def _is_empty(tokenizer: PreTrainedTokenizerBase) -> bool:
    """Whether a tokenizer knows no words: transformers makes one up where there are no files."""
    return len(tokenizer) <= len(tokenizer.all_special_ids) + 2
