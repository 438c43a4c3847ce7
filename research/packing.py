"""Weights in a quarter of the room: matrices in int8, as the bundled translator's are.

`headcount.bundle` unpacks them.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from headcount.errors import ModelError

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
