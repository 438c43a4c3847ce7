"""Removed equals shut: a cut model is run beside the whole one with the same heads shut."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor

from headcount.errors import UnsupportedModel
from headcount.heads import Head
from headcount.models.probe import core_of, probe_inputs, quiet_arguments
from headcount.models.quiet import quiet
from headcount.models.rest import at_rest
from headcount.models.switch import switched
from headcount.subject import Subject
from headcount.wiring.valves import valve

__all__ = ["check_removed"]

#: How far apart the two may be, of the largest number that comes out.
ROOM = {torch.float64: 1e-5, torch.float32: 1e-5}
ROOM_OF_HALVES = 2e-2


def check_removed(subject: Subject, small: Subject, going: Sequence[Head]) -> None:
    """Raise unless the cut model gives what the whole one gives with these heads shut."""
    inputs = _inputs(subject)
    ways = [False, True] if subject.anatomy.sites[0].route == "interface" else [False]
    for eager in ways:
        with _way(subject, eager), valve(subject, dict.fromkeys(going, 0.0)):
            shut = _run(subject, inputs)
        with _way(small, eager):
            removed = _tried(small, inputs)
        _compare(subject, shut, removed)


def _inputs(subject: Subject) -> dict[str, Any]:
    """A small input; numbers that are no token ids are drawn, for silence would hide much."""
    core = core_of(subject.model)
    inputs = probe_inputs(core)
    dice = torch.Generator().manual_seed(0)
    for name, value in inputs.items():
        if value.is_floating_point():
            inputs[name] = torch.randn(value.shape, generator=dice).to(value)
    return inputs | quiet_arguments(core)


def _way(subject: Subject, eager: bool) -> AbstractContextManager[None]:
    """As the model attends by itself, or by its plain formula."""
    return switched(core_of(subject.model), lambda _: "eager") if eager else nullcontext()


def _run(subject: Subject, inputs: dict[str, Any]) -> Tensor:
    core = core_of(subject.model)
    with quiet(), at_rest(core), torch.no_grad():
        output: Tensor = core(**inputs)[0]
    return output.double()


def _tried(small: Subject, inputs: dict[str, Any]) -> Tensor:
    try:
        return _run(small, inputs)
    except Exception as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UnsupportedModel(
            f"{type(small.inner).__name__} (model type '{small.inner.config.model_type}') does not "
            f"run once heads are cut out ({reason}), so none can be removed. Shut them with "
            "hc.valve instead."
        ) from error


def _compare(subject: Subject, shut: Tensor, removed: Tensor) -> None:
    room = ROOM.get(subject.dtype, ROOM_OF_HALVES)
    apart = float((shut - removed).abs().max() / shut.abs().max().clamp_min(1e-30))
    if not apart <= room:
        raise UnsupportedModel(
            f"{subject.name} without the heads is not {subject.name} with the heads shut: their "
            f"outputs are {apart:.1e} apart, where {room:.0e} is allowed. Shut the heads with "
            "hc.valve instead."
        )
