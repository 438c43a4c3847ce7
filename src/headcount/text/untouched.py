"""A tokenizer put back as it was after use: calls leave settings behind in its backend."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

__all__ = ["untouched"]


@contextmanager
def untouched(tokenizer: PreTrainedTokenizerBase) -> Iterator[None]:
    """Restore a tokenizer on any exit: truncation, padding, splitting, and its source mode."""
    put_back = _backend_state(tokenizer) if tokenizer.is_fast else lambda: None
    try:
        yield
    except BaseException:
        # A call that failed while it wrote a target leaves a translator's tokenizer turned round.
        getattr(tokenizer, "_switch_to_input_mode", lambda: None)()
        raise
    finally:
        put_back()


def _backend_state(tokenizer: PreTrainedTokenizerBase) -> Callable[[], None]:
    """What sets a fast tokenizer's backend to how it is now."""
    backend = tokenizer.backend_tokenizer
    truncation, padding = backend.truncation, backend.padding
    splitting = backend.encode_special_tokens

    def put_back() -> None:
        backend.no_truncation() if truncation is None else backend.enable_truncation(**truncation)
        backend.no_padding() if padding is None else backend.enable_padding(**padding)
        backend.encode_special_tokens = splitting

    return put_back
