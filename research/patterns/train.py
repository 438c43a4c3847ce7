"""`python -m research.patterns.train`: train the bundled network.

First on drawn patterns, then on looked-at maps of heads that no test uses and some of the drawn.
"""

from __future__ import annotations

import argparse
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from headcount.rooms.patterns.tally import CHANNELS, PATTERNS, SIDE, WEIGHTS, Network, pictures

from .drawn import drawn_maps
from .looked_at import looked_at
from .store import Kept, tensors
from .varied import varied

HERE = Path(__file__).parent


def main() -> None:
    parser = argparse.ArgumentParser(prog="research.patterns.train", description=__doc__)
    parser.add_argument("--out", type=Path, default=WEIGHTS)
    parser.add_argument("--quick", action="store_true", help="a hundredth of the work, for a trial")
    given = parser.parse_args()
    config = tomllib.loads((HERE / "config.toml").read_text())
    drawn, seen = config["drawn"], config["seen"]
    if given.quick:
        drawn, seen = drawn | {"maps": 200, "epochs": 1}, seen | {"times": 1, "epochs": 1}
    torch.manual_seed(config["seed"])
    maps, numbers = drawn_maps(drawn["maps"], config["seed"])
    x, y = drawn_pictures(maps), torch.from_numpy(numbers)
    model = fitted(Network(), x, y, drawn)
    real, labels = _seen(seen["times"], config["seed"])
    some = slice(seen["drawn"])
    model = fitted(model, torch.cat([real, x[some]]), torch.cat([labels, y[some]]), seen)
    given.out.parent.mkdir(parents=True, exist_ok=True)
    save_file(
        {name: tensor.half().contiguous() for name, tensor in model.state_dict().items()},
        given.out,
    )


def _seen(times: int, seed: int) -> tuple[Tensor, Tensor]:
    """Pictures of the looked-at maps: as they are, and so many times a little changed."""
    maps, about = looked_at()
    dice = np.random.default_rng([seed, 1])
    dev = [place for place in range(len(maps)) if about["part"][place] == "dev"]
    found = [maps[place] for place in dev]
    found += [varied(maps[place], dice) for _ in range(times) for place in dev]
    labels = [PATTERNS.index(about["label"][place]) for place in dev] * (times + 1)
    print(f"{len(dev)} looked-at maps, {len(found)} with their variants", flush=True)
    return drawn_pictures(found), torch.tensor(labels, dtype=torch.long)


def drawn_pictures(maps: Sequence[Kept]) -> Tensor:
    """The maps as the network sees them."""
    none = torch.zeros(0, CHANNELS, SIDE, SIDE, dtype=torch.float16)
    return torch.cat([none, *(pictures(*tensors(one)).half() for one in maps)])


def fitted(model: Network, x: Tensor, y: Tensor, config: dict[str, Any]) -> Network:
    """Adam with a cosine; what is pooled is dropped at random."""
    model = model.to(memory_format=torch.channels_last).train()  # type: ignore[call-overload]
    steps = config["epochs"] * -(-len(x) // config["batch"])
    best = torch.optim.AdamW(model.parameters(), lr=config["rate"], weight_decay=config["decay"])
    slower = torch.optim.lr_scheduler.CosineAnnealingLR(best, steps)
    for epoch in range(config["epochs"]):
        losses = []
        for places in torch.randperm(len(x)).split(config["batch"]):
            pooled = model.pooled(x[places].float().contiguous(memory_format=torch.channels_last))
            scores = model.last(nn.functional.dropout(pooled, config["dropout"]))
            loss = nn.functional.cross_entropy(scores, y[places], label_smoothing=0.05)
            best.zero_grad()
            loss.backward()
            best.step()
            slower.step()
            losses.append(loss.item())
        print(f"epoch {epoch}: {sum(losses) / len(losses):.4f}", flush=True)
    return model.eval()


if __name__ == "__main__":
    main()
