"""Load models without transformers' bars and advice, and put its voice back afterwards."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn

# --- A model at rest ----------------------------------------------------------------------------


@contextmanager
def eval_mode(model: nn.Module) -> Iterator[None]:
    """Within the block nothing drops out; every module's mode is as it was afterwards."""
    training = [module for module in model.modules() if module.training]
    devices = sorted({p.device.index for p in model.parameters() if p.device.type == "cuda"})
    try:
        with torch.random.fork_rng(devices=devices):
            for module in training:
                module.training = False
            yield
    finally:
        for module in training:
            module.training = True


# --- A model whose weights take no gradient -----------------------------------------------------


@contextmanager
def frozen(model: nn.Module) -> Iterator[None]:
    """Within the block no weight asks for a gradient; each is as it was afterwards.

    >>> layer = nn.Linear(2, 1)
    >>> with frozen(layer):
    ...     layer.weight.requires_grad
    False
    >>> layer.weight.requires_grad
    True
    """
    asking = [weight for weight in model.parameters() if weight.requires_grad]
    try:
        for weight in asking:
            weight.requires_grad_(False)
        yield
    finally:
        for weight in asking:
            weight.requires_grad_(True)


# --- Load models without transformers' bars and advice ------------------------------------------


@contextmanager
def quiet() -> Iterator[None]:
    """Silence transformers within the block; download bars stay, a download takes minutes."""
    with (
        _no_bars(),
        no_logs("transformers"),
        no_logs("huggingface_hub"),
        warnings.catch_warnings(action="ignore"),
    ):
        yield


@contextmanager
def no_logs(name: str) -> Iterator[None]:
    """Raise a library's log level above everything it says."""
    logger = logging.getLogger(name)
    level = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        logger.setLevel(level)


@contextmanager
def _no_bars() -> Iterator[None]:
    """Turn off the bars of reading weights."""
    from huggingface_hub.utils import are_progress_bars_disabled, enable_progress_bars
    from transformers.utils import logging as voice

    shown, downloads_shown = voice.is_progress_bar_enabled(), not are_progress_bars_disabled()
    voice.disable_progress_bar()
    if downloads_shown:
        enable_progress_bars()
    try:
        yield
    finally:
        if shown:
            voice.enable_progress_bar()
