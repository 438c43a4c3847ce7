"""Tiny models with real tokenizers, one a kind of task."""

from __future__ import annotations

from typing import Any

import tiny_tokenizers
from tiny import TINY
from transformers import PreTrainedTokenizerBase

from headcount.subject import Subject


def _subject(family: str, tokenizer: PreTrainedTokenizerBase, **settings: Any) -> Subject:
    """A model of the family whose vocabulary and special ids are the tokenizer's."""
    ids = {
        name: getattr(tokenizer, name)
        for name in ("pad_token_id", "bos_token_id", "eos_token_id")
        if getattr(tokenizer, name) is not None
    }
    model = TINY[family](**{"vocab_size": len(tokenizer), **ids, **settings})
    return Subject(model, tokenizer, name=f"tiny {family}")


def translator(family: str = "marian", **settings: Any) -> Subject:
    """An encoder-decoder that speaks, if not well."""
    tokenizer = tiny_tokenizers.BUILDERS[{"bart": "roberta"}.get(family, family)]()
    start = tokenizer.eos_token_id if family in ("bart", "m2m100") else tokenizer.pad_token_id
    # M2M100 keeps ids behind its vocabulary for languages; T5 has as many layers in both stacks,
    # or generate() cannot keep its keys.
    own = {"m2m100": {"vocab_size": len(tokenizer) + 128}, "t5": {"num_decoder_layers": 2}}
    more = {"decoder_start_token_id": start, **own.get(family, {}), **settings}
    return _subject(family, tokenizer, **more)


def classifier(labels: int = 2, **settings: Any) -> Subject:
    """An encoder with a classifier head."""
    return _subject(
        "bert",
        tiny_tokenizers.wordpiece(),
        model_class="BertForSequenceClassification",
        num_labels=labels,
        **settings,
    )


def encoder(**settings: Any) -> Subject:
    """An encoder without a head."""
    return _subject("bert", tiny_tokenizers.wordpiece(), **settings)


def filler(**settings: Any) -> Subject:
    """An encoder that fills in hidden tokens."""
    return _subject("bert", tiny_tokenizers.wordpiece(), model_class="BertForMaskedLM", **settings)


def writer(family: str = "gpt2", **settings: Any) -> Subject:
    """A decoder-only model."""
    return _subject(family, tiny_tokenizers.BUILDERS[family](), **settings)
