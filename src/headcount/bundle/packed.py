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
# magnitude becomes 127. Vectors stay in float16. They are packed by research/packing.py.

_SCALE = ".scale"


def unpack_weights(packed: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The weights in float32, under the names they were packed by.

    >>> steps = torch.tensor([[127, -64, 0]], dtype=torch.int8)
    >>> unpack_weights({"w": steps, "w.scale": torch.tensor([[0.5]])})["w"].tolist()
    [[63.5, -32.0, 0.0]]
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
