"""Which modules of a family are norms or activations that are written out in Python.

PyTorch's own layers are known by the functions they call. These are not: their forward is a
handful of multiplications, so they are known by class.
"""

from __future__ import annotations

import re

from torch import nn

__all__ = ["is_activation", "is_rms_norm"]

#: LlamaRMSNorm, Qwen3RMSNorm, Gemma3RMSNorm ...; T5 calls its own a layer norm.
_RMS_NORM = re.compile(r".*RMSNorm|(T5|MT5|UMT5|LongT5|SwitchTransformers|Pop2Piano|Udop)LayerNorm")

#: Where transformers keeps NewGELUActivation, QuickGELUActivation and the rest.
_ACTIVATIONS = "transformers.activations"


def is_rms_norm(module: nn.Module) -> bool:
    """Whether a module divides by a root mean square and multiplies by a gain, and no more.

    >>> is_rms_norm(nn.LayerNorm(4))
    False
    """
    own = not isinstance(module, nn.RMSNorm)
    return own and _RMS_NORM.fullmatch(type(module).__name__) is not None


def is_activation(module: nn.Module) -> bool:
    """Whether a module is an activation of transformers' own.

    >>> from transformers.activations import ACT2FN
    >>> is_activation(ACT2FN["gelu_new"]), is_activation(nn.Linear(1, 1))
    (True, False)
    """
    return type(module).__module__ == _ACTIVATIONS
