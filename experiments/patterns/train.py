"""`python -m experiments.patterns.train --classifiers DIR`: train the bundled network.

On drawn patterns, and on real maps of heads that nobody looked at, labelled by the rule. With
looked-at maps of the tuning heads shown beside them; heads of the test are never seen.
"""

from __future__ import annotations

import argparse
import random
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor

from headcount.survey.pattern_network import (
    CHANNELS,
    PATTERNS,
    SIDE,
    WEIGHTS,
    Network,
    pictures,
)
from headcount.survey.patterns import PatternRule

from .drawn import drawn_maps
from .heads import FAMILY, parts, subject_of
from .looked_at import looked_at
from .maps import maps_of
from .store import Kept, tensors
from .texts import given
from .varied import varied

HERE = Path(__file__).parent


def main() -> None:
    parser = argparse.ArgumentParser(prog="experiments.patterns.train", description=__doc__)
    parser.add_argument("--classifiers", required=True, help="what experiments.glue --save wrote")
    parser.add_argument("--out", type=Path, default=WEIGHTS)
    parser.add_argument("--quick", action="store_true", help="a hundredth of the work, for a trial")
    given_ = parser.parse_args()
    config = tomllib.loads((HERE / "config.toml").read_text())
    if given_.quick:
        config |= {"drawn": 200, "texts": 1, "epochs": 1, "dev_times": 1}
    torch.manual_seed(config["seed"])
    x, y = _examples(config, given_.classifiers)
    model = trained(x, y, config)
    given_.out.parent.mkdir(parents=True, exist_ok=True)
    save_file(
        {name: tensor.half().contiguous() for name, tensor in model.state_dict().items()},
        given_.out,
    )


def _examples(config: dict[str, Any], classifiers: str) -> tuple[Tensor, Tensor]:
    """Pictures and the numbers of their patterns, of all three sources."""
    drawn, labels = drawn_maps(config["drawn"], config["seed"])
    real = list(_real(config, classifiers))
    by_rule = torch.cat([PatternRule()(*tensors(one)) for one in real])
    seen, by_eye = _seen(config["dev_times"], config["seed"])
    print(f"{len(drawn)} drawn, {len(real)} by the rule, {len(seen)} by eye", flush=True)
    x = torch.cat([drawn_pictures(maps) for maps in (drawn, real, seen)])
    return x, torch.cat([torch.from_numpy(labels), by_rule, by_eye])


def _seen(times: int, seed: int) -> tuple[list[Kept], Tensor]:
    """The looked-at maps of the tuning heads: as they are, and so many times a little changed."""
    maps, about = looked_at()
    dice = np.random.default_rng([seed, 1])
    dev = [place for place in range(len(maps)) if about["part"][place] == "dev"]
    found = [maps[place] for place in dev]
    found += [varied(maps[place], dice) for _ in range(times) for place in dev]
    labels = [PATTERNS.index(about["label"][place]) for place in dev] * (times + 1)
    return found, torch.tensor(labels, dtype=torch.long)


def _real(config: dict[str, Any], classifiers: str) -> Any:
    """Maps of the heads that are for training, on texts of all kinds."""
    for model, family in FAMILY.items():
        subject = subject_of(model, classifiers)
        part = parts(family, subject.heads, config["head_seed"])
        dice = random.Random(f"{config['seed']} {model}")
        kinds = ["single", "long single"] if model == "translator" else config["kinds"]
        turns = config["texts"] * (1 if family == "minilm" else 4)
        for turn in range(turns):
            text = given(kinds[turn % len(kinds)], dice)
            for one in maps_of(
                subject, text, ("enc", "dec") if family == "translator" else ("enc",)
            ):
                if part[one.head] == "train":
                    yield Kept(one.weights, one.special, one.segment)


def drawn_pictures(maps: Sequence[Kept]) -> Tensor:
    """The maps as the network sees them."""
    none = torch.zeros(0, CHANNELS, SIDE, SIDE, dtype=torch.float16)
    return torch.cat([none, *(pictures(*tensors(one)).half() for one in maps)])


def trained(x: Tensor, y: Tensor, config: dict[str, Any]) -> Network:
    """Adam with a cosine, from a fixed seed."""
    model = Network().to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    steps = config["epochs"] * -(-len(x) // config["batch"])
    best = torch.optim.AdamW(model.parameters(), lr=config["rate"], weight_decay=config["decay"])
    slower = torch.optim.lr_scheduler.CosineAnnealingLR(best, steps)
    for epoch in range(config["epochs"]):
        losses = []
        for places in torch.randperm(len(x)).split(config["batch"]):
            scores = model(x[places].float().contiguous(memory_format=torch.channels_last))
            loss = torch.nn.functional.cross_entropy(scores, y[places], label_smoothing=0.05)
            best.zero_grad()
            loss.backward()
            best.step()
            slower.step()
            losses.append(loss.item())
        print(f"epoch {epoch}: {sum(losses) / len(losses):.4f}", flush=True)
    return model.eval()


if __name__ == "__main__":
    main()
