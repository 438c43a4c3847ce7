"""Token ids to draw random texts from: plain pieces of text, nothing that a model never saw."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from headcount.subject import Subject
from headcount.text.specials import special_ids
from headcount.wiring.ids import known_ids

__all__ = ["plain_ids"]

# "[unused7]", "<extra_id_3>", "<0x0A>", "<|reserved_1|>", "madeupword0001": kept for nobody.
_SPARE = re.compile(r"[\[<].+[\]>]|madeupword\d+", re.DOTALL)

_NAMED = ("pad", "bos", "eos", "unk", "sep", "cls", "mask", "decoder_start")


def plain_ids(subject: Subject, *, target: bool = False) -> list[int]:
    """Every id that stands for a piece of text, in order.

    With a tokenizer: its vocabulary without special, added, unknown and spare tokens. Without
    one: all ids that the model embeds but those that its config names.
    """
    rows = known_ids(subject, "decoder_input_ids" if target else "input_ids")
    if subject.tokenizer is None:
        named, config = _config_ids(subject.inner.config), subject.inner.config
        own = getattr(config, "tgt_vocab_size" if target else "src_vocab_size", None)
        size = rows or own or config.get_text_config().vocab_size
        return [number for number in range(size) if number not in named]
    left_out = special_ids(subject.tokenizer) | set(subject.tokenizer.added_tokens_decoder)
    left_out |= {subject.tokenizer.unk_token_id}
    return sorted(
        number
        for token, number in _vocabulary(subject.tokenizer, target).items()
        if number not in left_out
        and (rows is None or number < rows)
        and not _SPARE.fullmatch(token)
    )


def _vocabulary(tokenizer: Any, target: bool) -> Mapping[str, int]:
    """Tokens to ids; some Marian models have one vocabulary for the source, one for the target."""
    separate = getattr(tokenizer, "separate_vocabs", False) and not target
    found: Mapping[str, int] = tokenizer.get_src_vocab() if separate else tokenizer.get_vocab()
    return found


def _config_ids(config: Any) -> set[int]:
    """The special ids that a config names; an end of sentence may be several."""
    found = [getattr(config, f"{name}_token_id", None) for name in _NAMED]
    flat = [one for value in found for one in (value if isinstance(value, list) else [value])]
    return {number for number in flat if number is not None}
