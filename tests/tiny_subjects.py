"""Tiny models with real tokenizers, one a kind of task."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from subjects import subject_of

from headcount.models.subject import Subject


def _subject(family: str, tokenizer: str, **settings: Any) -> Subject:
    return replace(subject_of(family, tokenizer, **settings), name=f"tiny {family}")


def translator(family: str = "marian", **settings: Any) -> Subject:
    """An encoder-decoder that speaks, if not well."""
    # T5 has as many layers in both stacks, or generate() cannot keep its keys.
    own = {"num_decoder_layers": 2} if family == "t5" else {}
    return _subject(family, {"bart": "roberta"}.get(family, family), **(own | settings))


def classifier(labels: int = 2, **settings: Any) -> Subject:
    """An encoder with a classifier head."""
    head = {"model_class": "BertForSequenceClassification", "num_labels": labels}
    return _subject("bert", "wordpiece", **(head | settings))


def encoder(**settings: Any) -> Subject:
    """An encoder without a head."""
    return _subject("bert", "wordpiece", **settings)


def filler(**settings: Any) -> Subject:
    """An encoder that fills in hidden tokens."""
    return _subject("bert", "wordpiece", **({"model_class": "BertForMaskedLM"} | settings))


def writer(family: str = "gpt2", **settings: Any) -> Subject:
    """A decoder-only model."""
    return _subject(family, family, **settings)
