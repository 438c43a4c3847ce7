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
from headcount.records import Column

# --- The five patterns of attention maps, in the order of their numbers -------------------------

#: Kovaleva et al., EMNLP 2019, section 4.1, in the words of `docs/decisions/0006-patterns.md`.
PATTERNS = ("vertical", "diagonal", "vertical_diagonal", "block", "heterogeneous")

_MEANING = {
    "vertical": "a few columns through most rows",
    "diagonal": "a line along the diagonal",
    "vertical_diagonal": "columns and a diagonal line",
    "block": "squares of the two texts of a pair",
    "heterogeneous": "none of the four other patterns",
}

#: The share of a head's maps that show each pattern.
PATTERN_COLUMNS: tuple[Column, ...] = tuple(
    Column(
        f"pattern_{name}",
        meaning=f"Share of maps with the pattern {name.replace('_', ' and ')}: {_MEANING[name]}.",
        paper="Kovaleva et al. 2019, section 4.1",
        range=(0, 1),
        group="What its maps look like",
    )
    for name in PATTERNS
)

#: The pattern that most of a head's maps show, in a word.
PATTERN = Column(
    "pattern",
    meaning="The pattern that most of the head's maps show.",
    paper="Kovaleva et al. 2019, section 4.1",
    group="What its maps look like",
)


# --- Maps of any size as pictures of one size ---------------------------------------------------

#: Pixels of a side.
SIDE = 32
#: Ink, weight against even attention, the same beyond the columns' means, columns of specials, own
#: text of a pair, distance from the diagonal.
CHANNELS = 6

#: The weight that is drawn as full ink: this quantile of the picture, as a viewer would scale it.
_FULL = 0.99
#: The lift of a map that puts all its weight on a column as wide as a pixel.
_MOST = float(torch.log1p(torch.tensor(float(SIDE))))


def pictures(maps: Tensor, special: Tensor, segment: Tensor | None) -> Tensor:
    """Maps `[head, query, key]` of one text as `[head, channel, pixel, pixel]`.

    Areas are averaged, so a line or a column stays where it was, whatever the size. `special` and
    `segment` are `[key]`: places the tokenizer added, and the number of the text that a token
    belongs to, where that is known.

    >>> eye = torch.eye(64)[None]
    >>> drawn = pictures(eye, torch.zeros(64, dtype=torch.bool), torch.zeros(64, dtype=torch.long))
    >>> drawn.shape, drawn[0, 0].diagonal().min().item()
    (torch.Size([1, 6, 32, 32]), 1.0)
    """
    area = shrink(maps.shape[-1], maps.device)
    return drawn(area @ maps.float() @ area.T, area, special, segment)


def drawn(seen: Tensor, area: Tensor, special: Tensor, segment: Tensor | None) -> Tensor:
    """The pictures of maps whose pixels `[head, pixel, pixel]` are known: means of weights."""
    full = seen.flatten(1).quantile(_FULL, dim=1).clamp_min(1e-9)[:, None, None]
    ink = (seen / full).clamp(0, 1).sqrt()
    lift = (area.shape[1] * seen).clamp_min(0).log1p() / _MOST
    beyond = lift - lift.mean(1, keepdim=True)
    marks = _marks(area, special, segment).expand(len(seen), -1, -1, -1)
    return torch.cat([torch.stack([ink, lift, beyond], dim=1), marks], dim=1)


def shrink(size: int, device: torch.device | str = "cpu") -> Tensor:
    """The shares `[pixel, token]` that tokens have in pixels; rows add up to 1.

    >>> shrink(64)[0, :3].tolist()
    [0.5, 0.5, 0.0]
    """
    edges = torch.arange(SIDE + 1, dtype=torch.float64) * size / SIDE
    places = torch.arange(size, dtype=torch.float64)
    start = torch.maximum(edges[:-1, None], places)
    stop = torch.minimum(edges[1:, None], places + 1)
    shares = (stop - start).clamp_min(0) * SIDE / size
    return shares.float().to(device)


def _marks(area: Tensor, special: Tensor, segment: Tensor | None) -> Tensor:
    """Where specials stand, which cells belong to one text of a pair, how far the diagonal is."""
    columns = (area @ special.float()).expand(SIDE, SIDE)
    same = torch.zeros_like(columns)
    if segment is not None and bool((segment != segment[0]).any()):
        texts = area @ nn.functional.one_hot(segment.unique(return_inverse=True)[1]).float()
        same = texts @ texts.T
    pixels = torch.arange(SIDE, device=area.device)
    away = (pixels[:, None] - pixels).abs() / SIDE
    return torch.stack([columns, same, away])


# --- The small network that looks at pictures of maps -------------------------------------------

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
        """Scores of what was pooled."""
        scores: Tensor = self.last(self.pooled(pictures))
        return scores

    def pooled(self, pictures: Tensor) -> Tensor:
        """What the layers give, pooled over the whole picture by mean and by maximum."""
        seen = self.layers(pictures).flatten(2)
        return torch.cat([seen.mean(-1), seen.amax(-1)], dim=-1)


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
