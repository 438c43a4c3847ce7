"""The small network that looks at pictures of maps: 8 convolutional layers with ReLU.

Kovaleva et al., EMNLP 2019, section 4.1, give the number of layers and no more; sizes are ours.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from headcount.errors import ModelError
from headcount.patterns.kinds import PATTERNS
from headcount.patterns.picture import CHANNELS

__all__ = ["WEIGHTS", "Network", "network"]

#: Weights in float16; the card beside them says how they were trained.
WEIGHTS = Path(__file__).parent / "weights" / "patterns.safetensors"

#: What each layer gives, and by how much it shrinks the picture.
_LAYERS = ((16, 1), (24, 2), (24, 1), (32, 2), (32, 1), (48, 2), (48, 1), (48, 1))


class Network(nn.Module):
    """Pictures `[map, channel, pixel, pixel]` to scores `[map, pattern]`."""

    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        before = CHANNELS
        for width, stride in _LAYERS:
            layers += [nn.Conv2d(before, width, 3, stride, padding=1), nn.ReLU()]
            before = width
        self.layers = nn.Sequential(*layers)
        self.last = nn.Linear(2 * before, len(PATTERNS))

    def forward(self, pictures: Tensor) -> Tensor:
        """Scores; the whole picture is pooled by mean and by maximum."""
        seen = self.layers(pictures).flatten(2)
        return self.last(torch.cat([seen.mean(-1), seen.amax(-1)], dim=-1))


@cache
def network(device: str = "cpu") -> Network:
    """The trained network, in float32 on a device."""
    try:
        weights = load_file(WEIGHTS)
    except (SafetensorError, OSError) as error:
        raise ModelError(
            f"{WEIGHTS} cannot be read: it is cut off or damaged; install headcount again."
        ) from error
    model = Network()
    model.load_state_dict({name: tensor.float() for name, tensor in weights.items()})
    return model.eval().requires_grad_(False).to(device)
