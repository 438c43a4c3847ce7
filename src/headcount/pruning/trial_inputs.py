"""Inputs of a given length and batch for any model: what it reads costs no time."""

from __future__ import annotations

import inspect
from typing import Any

import torch
from torch import Tensor

from headcount.errors import UsageError
from headcount.models.probe import core_of, probe_inputs
from headcount.subject import Subject

__all__ = ["trial_inputs"]


def trial_inputs(subject: Subject, tokens: int, batch: int, seed: int = 0) -> dict[str, Any]:
    """Full rows of random tokens, source and target alike; pictures and sound have their own size.

    >>> from headcount.models.load import load
    >>> inputs = trial_inputs(load("translator", device="cpu"), tokens=7, batch=2)
    >>> {name: tuple(value.shape) for name, value in inputs.items() if name.endswith("ids")}
    {'input_ids': (2, 7), 'decoder_input_ids': (2, 7)}
    """
    _check(subject, tokens, batch)
    core, dice = core_of(subject.model), torch.Generator().manual_seed(seed)
    inputs: dict[str, Any] = {}
    for name, value in probe_inputs(core).items():
        wide = value.expand(batch, *value.shape[1:])
        inputs[name] = _drawn(value, tokens, batch, dice) if name.endswith("ids") else wide.clone()
    if "use_cache" in inspect.signature(subject.model.forward).parameters:
        inputs["use_cache"] = False
    return inputs


def _drawn(ids: Tensor, tokens: int, batch: int, dice: torch.Generator) -> Tensor:
    """Ids drawn from those that the probe found to be ordinary."""
    places = torch.randint(ids.shape[1], (batch, tokens), generator=dice)
    return ids[0, places.to(ids.device)]


def _check(subject: Subject, tokens: int, batch: int) -> None:
    if tokens < 1 or batch < 1:
        raise UsageError(f"{batch} rows of {tokens} tokens cannot be run; both are 1 or more.")
    config = core_of(subject.model).config
    for name in ("max_position_embeddings", "n_positions"):
        most = getattr(config, name, None)
        if isinstance(most, int) and tokens > most:
            raise UsageError(
                f"{subject.name} takes {most} tokens at most, and {tokens} were asked for; give "
                "shorter lengths."
            )
