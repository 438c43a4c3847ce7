"""Norms and activations written out in Python: rules meet them as modules, from outside."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from headcount.errors import UnsupportedModel
from headcount.lrp.operations import carries
from headcount.lrp.rule import Rule
from headcount.lrp.step import Share, step
from headcount.models.families.blocks import is_activation, is_rms_norm

__all__ = ["met"]


@contextmanager
def met(model: nn.Module, rule: Rule) -> Iterator[None]:
    """Within the block such modules are one step each, whatever they do inside."""
    with ExitStack() as stack:
        for module in model.modules():
            if is_rms_norm(module) or is_activation(module):
                stack.enter_context(_one(module, rule))
        yield


@contextmanager
def _one(module: nn.Module, rule: Rule) -> Iterator[None]:
    """Run the module on a bare copy of its input, then tie its output to the input by a step."""
    waiting: list[Tensor | None] = []

    def before(_: nn.Module, args: Any) -> Any:
        carried = bool(args) and carries(args[0])
        waiting.append(args[0] if carried else None)
        return (args[0].detach(), *args[1:]) if carried else None

    def after(_: nn.Module, args: Any, output: Any) -> Any:
        x = waiting.pop()
        if x is None or not isinstance(output, Tensor):
            return None
        return step(output, [x], _share(module, rule, x.detach(), output.detach()))

    handles = [
        module.register_forward_pre_hook(before),
        module.register_forward_hook(after, always_call=True),
    ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _share(module: nn.Module, rule: Rule, x: Tensor, output: Tensor) -> Share:
    if is_activation(module):
        return lambda told: (told,)
    gain = _gain(module, x, output)
    return lambda told: (rule.rms_norm(x, gain, told),)


def _gain(module: nn.Module, x: Tensor, output: Tensor) -> Tensor:
    """What the norm multiplies by, whatever it calls it: its answer to ones.

    Checked on what it just did, so that a norm of another kind is not taken for this one.
    """
    with torch.no_grad():
        gain: Tensor = (
            type(module).forward(module, torch.ones_like(x[..., :1, :])).flatten()[-x.shape[-1] :]
        )
        root = x.float().square().mean(dim=-1, keepdim=True).sqrt()
        expected = x.float() / root.clamp_min(1e-12) * gain.float()
    scale = output.abs().max().float()
    if not torch.allclose(expected, output.float(), rtol=0, atol=0.05 * float(scale) + 1e-6):
        raise UnsupportedModel(
            f"{type(module).__name__} is no root-mean-square norm with a gain, and no relevance "
            "rule covers it; use another score, e.g. gradient."
        )
    return gain
