"""Small random models with a tokenizer of their kind: all that a survey of text needs."""

from __future__ import annotations

from pathlib import Path

from tiny import TINY
from tiny_tokenizers import BUILDERS

from headcount.models.subject import Subject


def subject_of(family: str, tokenizer: str, **settings: object) -> Subject:
    """A tiny model whose vocabulary is the tokenizer's.

    >>> subject_of("bert", "wordpiece")
    Subject(bert: BertModel, 2 layers x 4 heads enc, float32 on cpu)
    """
    words = BUILDERS[tokenizer]()
    names = ("pad_token_id", "bos_token_id", "eos_token_id")
    ids = {name: getattr(words, name) for name in names if getattr(words, name) is not None}
    start = "eos_token_id" if family in ("bart", "m2m100") else "pad_token_id"
    # M2M100 keeps ids behind its vocabulary for languages.
    size = len(words) + (128 if family == "m2m100" else 0)
    more = {"vocab_size": size, "decoder_start_token_id": ids.get(start, 0)}
    return Subject(TINY[family](**(ids | more | settings)), words, name=family)


def save(folder: Path, family: str, tokenizer: str | None = None, **settings: object) -> Path:
    """A saved tiny model, as a user has it on disk."""
    if tokenizer is None:
        TINY[family](**settings).save_pretrained(folder)
        return folder
    subject = subject_of(family, tokenizer, **settings)
    subject.model.save_pretrained(folder)
    assert subject.tokenizer is not None
    subject.tokenizer.save_pretrained(folder)
    return folder
