"""What one model takes in, read off the model in hand."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from torch import Tensor

from headcount.errors import ModelError
from headcount.text.limits import COUNTS_FROM_PADDING, position_limit

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

__all__ = ["Intake", "Shift", "intake_of", "shift_of"]

#: Labels ``[batch, token]``, padded on the right with -100, become the decoder's input.
Shift = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Intake:
    """What a model's forward takes. The default takes everything and has no limit."""

    #: Names of forward's arguments; None where they are not known.
    takes: frozenset[str] | None = None
    #: How labels become decoder input; None unless the model is an encoder-decoder.
    shift: Shift | None = None
    source_limit: int | None = None
    target_limit: int | None = None
    #: The model's padding id, for tokenizers that have none.
    pad_id: int | None = None
    #: Whether positions must be passed when padding stands on the left.
    needs_positions: bool = False

    def accepts(self, name: str) -> bool:
        """Whether forward can be given an argument of this name."""
        return self.takes is None or name in self.takes


def intake_of(model: Any, tokenizer: PreTrainedTokenizerBase | None = None) -> Intake:
    """Read what a model takes: its arguments, its limits, its way of starting a decoder."""
    bare = _unwrapped(model)
    config = bare.config
    takes = frozenset(inspect.signature(bare.forward).parameters)
    if getattr(config, "type_vocab_size", 2) < 2:
        takes -= {"token_type_ids"}
    return Intake(
        takes=takes,
        shift=shift_of(model),
        source_limit=position_limit(config, tokenizer, "source"),
        target_limit=position_limit(config, tokenizer, "target"),
        pad_id=getattr(config, "pad_token_id", None),
        needs_positions="position_ids" in takes and config.model_type not in COUNTS_FROM_PADDING,
    )


def shift_of(model: Any) -> Shift | None:
    """How an encoder-decoder turns labels into decoder input; None for other models.

    The family's own function is used, for they differ: Marian and T5 start with the padding
    token, BART with </s>, mBART with the language code that ends its labels.
    """
    bare = _unwrapped(model)
    takes = inspect.signature(bare.forward).parameters
    # One half of an encoder-decoder, in hand alone, has the config of the whole.
    if not getattr(bare.config, "is_encoder_decoder", False) or "decoder_input_ids" not in takes:
        return None
    for name in ("prepare_decoder_input_ids_from_labels", "_shift_right"):
        method: Shift | None = getattr(bare, name, None)
        if method is not None:
            return method
    return _family_shift(bare)


def _family_shift(model: Any) -> Shift:
    """The ``shift_tokens_right`` beside the class: all that M2M100 and bare models have."""
    function = getattr(sys.modules[type(model).__module__], "shift_tokens_right", None)
    config = model.config
    if function is None or config.pad_token_id is None:
        raise ModelError(
            f"{type(model).__name__} does not say how its decoder starts; load the model with its "
            "language-modelling head (AutoModelForSeq2SeqLM), or pass ready inputs."
        )
    extra = [config.pad_token_id, config.decoder_start_token_id]
    count = len(inspect.signature(function).parameters) - 1
    return lambda labels: function(labels, *extra[:count])


def _unwrapped(model: Any) -> Any:
    """The model inside an adapter's wrapper."""
    inner = getattr(model, "get_base_model", None)
    return inner() if inner is not None else model
