"""Small inputs that make any model run once, so that its attention can be listened to."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from headcount.errors import UnsupportedModel
from headcount.models.fit import bare

__all__ = ["core_of", "explained", "probe_inputs", "quiet_arguments"]

#: Source and target lengths differ, so that a cross-attention site shows by its shape.
SOURCE_LENGTH, TARGET_LENGTH = 5, 4


def core_of(model: nn.Module) -> PreTrainedModel:
    """The bare model inside task heads and adapters: where all attention happens."""
    unwrap: Any = getattr(model, "get_base_model", None)
    inner = unwrap() if unwrap is not None else model
    core = bare(inner) if hasattr(inner, "base_model") else inner
    return core if isinstance(core, PreTrainedModel) else inner


def probe_inputs(core: PreTrainedModel) -> dict[str, Tensor]:
    """Inputs for one tiny forward of a text, image or audio model."""
    names = set(inspect.signature(core.forward).parameters)
    inputs = _main_input(core, names)
    if "decoder_input_ids" in names and getattr(core.config, "is_encoder_decoder", False):
        inputs["decoder_input_ids"] = _ids(core, TARGET_LENGTH)
    return {name: value.to(core.device) for name, value in inputs.items()}


def quiet_arguments(model: nn.Module) -> dict[str, Any]:
    """Arguments that spare a forward what nobody reads: the cache, and most of the logits."""
    names = set(inspect.signature(model.forward).parameters)
    wanted = {"use_cache": False, "logits_to_keep": 1}
    return {name: value for name, value in wanted.items() if name in names}


@contextmanager
def explained(core: PreTrainedModel) -> Iterator[None]:
    """Within the block, a forward that fails says that the heads could not be found."""
    try:
        yield
    except UnsupportedModel:
        raise
    except Exception as error:
        reason = str(error).splitlines()[0] if str(error) else "no message"
        raise UnsupportedModel(
            f"{type(core).__name__} could not be run on a small input to find its heads "
            f"({type(error).__name__}: {reason}); "
            "pass the part of the model that takes token ids or pixels alone."
        ) from error


def _main_input(core: PreTrainedModel, names: set[str]) -> dict[str, Tensor]:
    main = core.main_input_name
    if main == "pixel_values" and "input_ids" not in names:
        return {main: _pixels(core)}
    if main == "input_features":
        return {main: _features(core)}
    if main == "input_values" and "input_ids" not in names:
        return {main: torch.zeros(1, 16000, dtype=core.dtype)}
    return {"input_ids": _ids(core, SOURCE_LENGTH)}


def _ids(core: PreTrainedModel, length: int) -> Tensor:
    """Ordinary token ids: within the vocabulary, none of them padding."""
    config = core.config.get_text_config()
    size = int(getattr(config, "vocab_size", 0) or 32)
    pad = getattr(config, "pad_token_id", None)
    usable = [i for i in range(min(size, 64)) if i != pad][-length:]
    return torch.tensor([(usable * length)[:length]])


def _pixels(core: PreTrainedModel) -> Tensor:
    config: Any = core.config
    size = config.image_size
    height, width = (size, size) if isinstance(size, int) else tuple(size)
    return torch.zeros(1, getattr(config, "num_channels", 3), height, width, dtype=core.dtype)


def _features(core: PreTrainedModel) -> Tensor:
    """Log-mel frames: the encoder's convolution halves their number (Whisper)."""
    config: Any = core.config
    frames = 2 * getattr(config, "max_source_positions", 64)
    return torch.zeros(1, getattr(config, "num_mel_bins", 80), frames, dtype=core.dtype)
