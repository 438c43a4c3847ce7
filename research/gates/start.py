"""Where a run starts: a trained translator, or the same shape with random weights."""

from __future__ import annotations

from typing import Any

import headcount as hc
from research.translator.model import build_model

from .config import Config

__all__ = ["fresh", "starting_point"]


def starting_point(config: Config, device: str) -> hc.Subject:
    """The translator as everyone has it: what int8 expands to, in float32."""
    return hc.load(config.start, device=device)


def fresh(config: Config, seed: int, device: str) -> hc.Subject:
    """The translator's shape and tokenizer with random weights, drawn as its recipe does."""
    tokenizer: Any = hc.load(config.start, device="cpu").tokenizer
    model = build_model(config.recipe.model, len(tokenizer), seed + 1)
    return hc.Subject(model.to(device), tokenizer, name="translator, untrained")
