"""A model folder whose weights are packed in int8, opened as any other."""

from __future__ import annotations

from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from headcount.bundle.quantise import unpack
from headcount.errors import ModelError

__all__ = ["PACKED", "is_packed", "unpacked"]

#: The file in a model folder that holds packed weights.
PACKED = "packed.safetensors"


def is_packed(folder: Path) -> bool:
    """Whether a folder's weights are packed."""
    return (folder / PACKED).is_file()


def unpacked(folder: Path) -> dict[str, Tensor]:
    """The weights of a folder in float32, by name."""
    try:
        return unpack(load_file(folder / PACKED))
    except (SafetensorError, OSError) as error:
        raise ModelError(
            f"{folder / PACKED} cannot be read: it is cut off or damaged; install headcount again."
        ) from error
