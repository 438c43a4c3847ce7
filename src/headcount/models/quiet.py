"""Load models without transformers' bars and advice, and put its voice back afterwards."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["no_logs", "quiet"]


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
