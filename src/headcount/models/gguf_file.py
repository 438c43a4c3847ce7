"""GGUF files: read their header once, and unpack their weights into plain tensors.

transformers parses the header anew for the config, the weights and the tokenizer, and rebuilds
the table of tensor names for every module; remembering both within one load makes a model of
30 layers open three times faster.
"""

from __future__ import annotations

import functools
import io
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr
from typing import Any

from headcount.errors import ModelError

__all__ = ["gguf_options", "reading_gguf"]


@contextmanager
def reading_gguf() -> Iterator[None]:
    """Within the block, GGUF headers are parsed once and no bar is drawn."""
    try:
        import gguf
    except ImportError:
        raise ModelError(
            "A GGUF model needs the package gguf, which is not installed; run `pip install gguf`."
        ) from None
    with ExitStack() as stack:
        for name in ("GGUFReader", "get_tensor_name_map"):
            stack.enter_context(_remembered(gguf, name))
        stack.enter_context(redirect_stderr(io.StringIO()))  # its bar has no switch
        yield


@contextmanager
def _remembered(module: Any, name: str) -> Iterator[None]:
    """Within the block, a function of a module answers the same question only once."""
    original = getattr(module, name)
    setattr(module, name, functools.cache(original))
    try:
        yield
    finally:
        setattr(module, name, original)


def gguf_options() -> dict[str, Any]:
    """What asks transformers for plain weights: packed ones have no rows to look at or cut."""
    import transformers

    config = getattr(transformers, "GgufConfig", None)  # older releases always unpack
    return {"quantization_config": config(dequantize=True)} if config else {}
