"""One run: a model learns a task from one seed and says what it thinks of the dev rows."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from headcount.errors import ModelError

from .config import Each, Train
from .encoded import Encoded, lay_epoch, width_of
from .model import logits_of
from .step import Step

__all__ = ["Split", "finetune", "make_deterministic", "predict", "rate_at"]


@dataclass(frozen=True)
class Split:
    """The rows of a task as tensors on the device."""

    train: Encoded
    dev: Encoded


def finetune(step: Step, split: Split, each: Each, seed: int) -> dict[str, Any]:
    """Train and predict; the record holds the outputs for every dev row, in their order."""
    began, train = time.monotonic(), step.settings
    dice = torch.Generator().manual_seed(seed)
    lengths, device = split.train.lengths.cpu(), split.train.ids.device
    epochs = [lay_epoch(lengths, train.widths, train.batch, dice) for _ in range(each.epochs)]
    first = {width: rows for laid in epochs for width, rows in laid}
    step.begin(seed, [split.train.batch(w, rows.to(device)) for w, rows in sorted(first.items())])
    ready, done, losses = time.monotonic(), 0, []
    total = sum(map(len, epochs))
    for laid in epochs:
        numbers = torch.stack([rows for _, rows in laid]).to(device)
        for (width, _), rows in zip(laid, numbers, strict=True):
            step(split.train.batch(width, rows), rate_at(done, total, each.rate, train.warmup))
            done += 1
        losses.append(float(step.loss) / len(laid))
        step.loss.zero_()
    trained = time.monotonic()
    outputs = predict(step.model, split.dev, train)
    _check_finite(outputs, losses)
    return {
        "outputs": outputs.tolist(),
        "gold": split.dev.gold.tolist(),
        "loss": losses,
        "steps": total,
        "prepare_seconds": round(ready - began, 2),
        "train_seconds": round(trained - ready, 2),
        "seconds": round(time.monotonic() - began, 2),
    }


@torch.no_grad()
def predict(model: Any, rows: Encoded, settings: Train, batch: int = 256) -> Tensor:
    """The outputs of every row in single precision, `[row, output]`, on the CPU."""
    model.eval()
    order = rows.lengths.argsort(stable=True)
    found = []
    for part in order.split(batch):
        width = width_of(int(rows.lengths[part[-1]]), settings.widths)
        found.append(logits_of(model, rows.batch(width, part)).float())
    outputs = torch.cat(found)
    return torch.empty_like(outputs).index_copy_(0, order, outputs).cpu()


def rate_at(step: int, steps: int, peak: float, warmup: float) -> float:
    """Straight up to the peak over the warm-up's share of all steps, then straight down to 0.

    >>> [round(rate_at(step, 100, 1.0, 0.1), 2) for step in (0, 9, 10, 55, 99)]
    [0.1, 1.0, 1.0, 0.5, 0.01]
    """
    rising = max(1, round(warmup * steps))
    return peak * min((step + 1) / rising, (steps - step) / max(1, steps - rising))


def make_deterministic() -> None:
    """Have PyTorch take the algorithms that give the same bits every time."""
    torch.use_deterministic_algorithms(True)
    # Every operation of ours writes all it allocates; filling it first would double the kernels.
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]


def _check_finite(outputs: Tensor, losses: list[float]) -> None:
    if not torch.isfinite(outputs).all():
        raise ModelError(
            f"The outputs are not finite after training (loss by epoch: {losses}); "
            "lower the rate in the config."
        )
