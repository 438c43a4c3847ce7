"""How many tokens a model takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedTokenizerBase

__all__ = ["COUNTS_FROM_PADDING", "position_limit"]

#: Families that number positions from their padding id on, so the first ones are never used,
#: and that read the numbers off the padding themselves.
COUNTS_FROM_PADDING = frozenset(
    {
        "camembert",
        "data2vec-text",
        "esm",
        "ibert",
        "layoutlmv3",
        "lilt",
        "longformer",
        "luke",
        "markuplm",
        "mpnet",
        "roberta",
        "roberta-prelayernorm",
        "xlm-roberta",
        "xlm-roberta-xl",
        "xmod",
    }
)
#: Families that see distances only: any length will do, whatever an old config says.
_RELATIVE = frozenset(
    {
        "bloom",
        "funnel",
        "longt5",
        "mpt",
        "mt5",
        "pop2piano",
        "switch_transformers",
        "t5",
        "udop",
        "umt5",
        "xlnet",
    }
)
_NAMES = {
    "source": ("max_source_positions", "max_encoder_position_embeddings"),
    "target": ("max_target_positions", "max_decoder_position_embeddings"),
}
_COMMON = ("max_position_embeddings", "n_positions", "n_ctx", "max_seq_len")
# Tokenizers say 10**30 when they do not know.
_SENTINEL = 10**9


def position_limit(
    config: PretrainedConfig,
    tokenizer: PreTrainedTokenizerBase | None = None,
    side: str = "source",
) -> int | None:
    """The longest input of a side, special tokens included; None where there is no limit.

    The config decides; only where it says nothing does the tokenizer's own maximum count.

    >>> from transformers import BertConfig, RobertaConfig, T5Config
    >>> position_limit(BertConfig()), position_limit(T5Config())
    (512, None)
    >>> position_limit(RobertaConfig(max_position_embeddings=514, pad_token_id=1))
    512
    """
    config = _of_side(config, side)
    if _only_distances(config):
        return None
    for name in (*_NAMES[side], *_COMMON):
        found = getattr(config, name, None)
        if isinstance(found, int) and found > 0:
            return found - _unused(config)
    known = getattr(tokenizer, "model_max_length", None)
    return int(known) if known is not None and known < _SENTINEL else None


def _of_side(config: PretrainedConfig, side: str) -> PretrainedConfig:
    """The config that knows: composite models keep one a side, or one for text."""
    part = getattr(config, "encoder" if side == "source" else "decoder", None)
    if hasattr(part, "model_type"):
        return part
    inner = getattr(config, "text_config", None)
    return inner if hasattr(inner, "model_type") else config


def _only_distances(config: PretrainedConfig) -> bool:
    no_absolute = getattr(config, "position_biased_input", True) is False
    return config.model_type in _RELATIVE or no_absolute or bool(getattr(config, "alibi", False))


def _unused(config: PretrainedConfig) -> int:
    padding = getattr(config, "pad_token_id", None)
    if config.model_type not in COUNTS_FROM_PADDING or padding is None:
        return 0
    return int(padding) + 1
