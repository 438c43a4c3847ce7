"""A model folder whose weights are packed in int8, opened as any other."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from headcount.errors import ModelError

# --- Weights in a quarter of the room -----------------------------------------------------------
# A matrix row (an output channel, a token's embedding) is symmetric around zero: its largest
# magnitude becomes 127. Vectors stay in float16.

_STEPS = 127
_SCALE = ".scale"


def pack_weights(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Matrices as int8 with a float16 scale a row, everything else as float16.

    >>> packed = pack_weights({"w": torch.tensor([[1.27, -0.5], [0.0, 0.0]]), "b": torch.ones(2)})
    >>> packed["w"].tolist(), packed["b"].dtype
    ([[127, -50], [0, 0]], torch.float16)
    """
    packed: dict[str, Tensor] = {}
    for name, tensor in weights.items():
        _check(name, tensor)
        if tensor.dim() == 2:
            # Round to the scale as it is stored, so that rounding the scale itself costs nothing.
            matrix = tensor.float()
            scale = (matrix.abs().amax(dim=1, keepdim=True) / _STEPS).half()
            exact = scale.float()
            steps = torch.where(exact > 0, matrix / exact, 0.0)
            packed[name] = steps.round().clamp(-_STEPS, _STEPS).to(torch.int8)
            packed[name + _SCALE] = scale
        else:
            packed[name] = tensor.half().contiguous()
    return packed


def unpack_weights(packed: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The weights in float32, under the names they were packed by.

    >>> unpack_weights(pack_weights({"w": torch.tensor([[2.0, -1.0, 0.0]])}))["w"].round(decimals=2)
    tensor([[ 2.0000, -1.0100,  0.0000]])
    """
    weights = {}
    for name, tensor in packed.items():
        if tensor.dtype == torch.int8:
            weights[name] = tensor.float() * _scale_of(name, packed)
        elif not name.endswith(_SCALE):
            weights[name] = tensor.float()
    return weights


def _scale_of(name: str, packed: Mapping[str, Tensor]) -> Tensor:
    if name + _SCALE not in packed:
        raise ModelError(f"The packed weights hold {name} but not {name}{_SCALE}; pack them again.")
    return packed[name + _SCALE].float()


def _check(name: str, tensor: Tensor) -> None:
    if name.endswith(_SCALE):
        raise ModelError(
            f"A weight called {name} cannot be packed: names ending in {_SCALE} are taken."
        )
    if not torch.isfinite(tensor).all():
        raise ModelError(f"{name} holds values that are not finite, which int8 cannot show.")
    limit = torch.finfo(torch.float16).max * (_STEPS if tensor.dim() == 2 else 1)
    if tensor.numel() and tensor.abs().max() > limit:
        raise ModelError(f"{name} holds values beyond {limit:.3g}, the largest that can be packed.")


# --- A model folder whose weights are packed in int8, opened as any other -----------------------

#: The file in a model folder that holds packed weights.
PACKED = "packed.safetensors"


def is_packed(folder: Path) -> bool:
    """Whether a folder's weights are packed."""
    return (folder / PACKED).is_file()


def read_packed(folder: Path) -> dict[str, Tensor]:
    """The weights of a folder in float32, by name."""
    try:
        return unpack_weights(load_file(folder / PACKED))
    except (SafetensorError, OSError) as error:
        raise ModelError(
            f"{folder / PACKED} cannot be read: it is cut off or damaged; install headcount again."
        ) from error
