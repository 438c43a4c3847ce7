"""T5's position bias: the first layer of a stack computes it, a number a head, for all layers.

Where layers keep different heads, each gets a copy of the first layer's table, to be cut to its
own heads, and computes its own bias. Cross-attention shares a bias of zeros in the same way.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from copy import deepcopy
from typing import Any

from torch import nn

from headcount.models.fit import forget_bias
from headcount.models.site import Site
from headcount.pruning.keep import Keep

__all__ = ["part_biases"]

_FLAG = "has_relative_attention_bias"
_TABLE = "relative_attention_bias"


def part_biases(model: nn.Module, keeps: Sequence[Keep], sites: Sequence[Site]) -> list[Site]:
    """Give layers a bias of their own in stacks that will need it; these layers are returned."""
    parted = []
    for stack in dict.fromkeys(site.stack for site in sites):
        own = [site for site in sites if site.stack == stack and _shares(model, site)]
        if len(own) > 1 and len({_left(site, keeps) for site in own}) > 1:
            _part(model, own)
            parted += own
    return parted


def _shares(model: nn.Module, site: Site) -> bool:
    """Whether a layer is handed the bias of another, or hands its own on."""
    module = model.get_submodule(site.module)
    handed = "position_bias" in inspect.signature(module.forward).parameters  # not in UMT5
    own = forget_bias in module._forward_pre_hooks.values()
    return handed and hasattr(module, _FLAG) and not own


def _left(site: Site, keeps: Sequence[Keep]) -> tuple[Any, ...]:
    """What stays of a layer, for comparison."""
    for keep in keeps:
        if site in keep.sites:
            return (keep.dead, *keep.queries.tolist())
    return (False, *[True] * site.heads)


def _part(model: nn.Module, sites: Sequence[Site]) -> None:
    modules: list[Any] = [model.get_submodule(site.module) for site in sites]
    first = next((module for module in modules if getattr(module, _FLAG)), None)
    for module in modules:
        if first is not None and not getattr(module, _FLAG):
            setattr(module, _TABLE, deepcopy(getattr(first, _TABLE)))
            setattr(module, _FLAG, True)
        module.register_forward_pre_hook(forget_bias, with_kwargs=True)
