"""The seam: one attention function that everything in headcount reads and scales through.

It is registered with transformers' AttentionInterface once per base implementation, together
with that implementation's mask function. It calls the base, then shows each attached part
what happened; a part may change the head outputs `[batch, query, head, dim]`, which lie side
by side here just before the output projection.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

import torch
from torch import Tensor, nn

from headcount.errors import UsageError
from headcount.models import (
    Site,
    Subject,
    base_function,
    entering,
    family_of,
    locked,
    register,
    switched,
)

if TYPE_CHECKING:
    from headcount.models import Anatomy


# --- The seam -----------------------------------------------------------------------------------

PREFIX = "headcount-"


@dataclass(frozen=True)
class Attended:
    """What one attention call shows: head outputs, and the map where the base computes one.

    `value` is `[row, key head, key, dim]` and `dropout` the share of the map that is dropped;
    neither is known outside the interface.
    """

    output: Tensor
    weights: Tensor | None
    mask: Tensor | None
    value: Tensor | None = None
    dropout: float = 0.0


class Part(Protocol):
    """Something attached to the seam: called at every site, returns the head outputs to use."""

    def __call__(self, module: nn.Module, attended: Attended) -> Tensor:
        """Read or change what the heads gave."""


#: Parts by the id of the attention module they listen to, in the order they were attached.
_PARTS: dict[int, list[Part]] = defaultdict(list)


def attend(
    module: nn.Module, query: Tensor, key: Tensor, value: Tensor, attention_mask: Any, **kwargs: Any
) -> tuple[Tensor, Tensor | None]:
    """Attention as the model does it, then every attached part in turn."""
    config: Any = module.config
    base = config._attn_implementation.removeprefix(PREFIX)
    function = base_function(module, base)
    output, weights = function(module, query, key, value, attention_mask, **kwargs)
    dropout = float(kwargs.get("dropout") or 0.0)
    attended = Attended(output, weights, attention_mask, value, dropout)
    return shown(module, attended), weights


def shown(module: nn.Module, attended: Attended) -> Tensor:
    """What the heads gave, after every attached part in turn has seen or changed it."""
    for part in _PARTS.get(id(module), ()):
        attended = replace(attended, output=part(module, attended))
    return attended.output


@contextmanager
def attached(
    model: nn.Module, anatomy: Anatomy, part: Part, *, maps: bool = False
) -> Iterator[None]:
    """Attach a part to every site that is reached through the interface, for this block.

    With `maps` the family's own eager function is used, since the fused ones give no weights.
    """
    modules = interface_modules(model, anatomy)
    if not modules:  # outside the interface a name it does not know would change the model
        yield
        return
    with ExitStack() as stack:
        stack.enter_context(switched(model, _to_eager if maps else _to_own))
        stack.callback(_detach, modules, part)
        for module in modules:
            _PARTS[id(module)].append(part)
        yield


def interface_modules(model: nn.Module, anatomy: Anatomy) -> list[nn.Module]:
    """The attention modules behind the sites, each once."""
    names = {site.module for site in anatomy.sites if site.route == "interface"}
    return [model.get_submodule(name) for name in sorted(names)]


class Turns:
    """Which site an attention call is: a module that serves several layers is called in turn."""

    def __init__(self, model: nn.Module, anatomy: Anatomy) -> None:
        self._sites: dict[int, list[Site]] = defaultdict(list)
        for site in sorted(anatomy.sites, key=lambda site: site.call):
            self._sites[id(model.get_submodule(site.module))].append(site)
        self._turn: dict[int, int] = defaultdict(int)
        self.shared = any(len(sites) > 1 for sites in self._sites.values())

    def next(self, module: nn.Module) -> Site:
        """The site of this call."""
        sites = self._sites[id(module)]
        if len(sites) > 1 and _in_backward():
            raise UsageError(
                f"{sites[0].module} serves several layers and is being recomputed in backward(), "
                "where its layer cannot be known; turn off checkpointing for this model."
            )
        turn = self._turn[id(module)]
        self._turn[id(module)] = (turn + 1) % len(sites)
        return sites[turn]

    def reset(self, *_: Any) -> None:
        """Start a forward afresh, also after one that broke off half way."""
        self._turn.clear()

    @contextmanager
    def counted(self, model: nn.Module) -> Iterator[None]:
        """Reset at the start of every forward of the model, for this block."""
        handle = model.register_forward_pre_hook(self.reset) if self.shared else None
        try:
            yield
        finally:
            if handle is not None:
                handle.remove()


def _in_backward() -> bool:
    """Whether autograd is running a backward pass right now."""
    return bool(torch._C._current_graph_task_id() != -1)


def _detach(modules: list[nn.Module], part: Part) -> None:
    for module in modules:
        parts = _PARTS.get(id(module), [])
        if part in parts:
            parts.remove(part)
        if not parts:
            _PARTS.pop(id(module), None)


def _to_own(name: str) -> str:
    return name if name.startswith(PREFIX) else _registered(name)


def _to_eager(name: str) -> str:
    return _registered("eager")


def _registered(base: str) -> str:
    register(PREFIX + base, attend, mask_like=base)
    return PREFIX + base


# --- Families outside the interface -------------------------------------------------------------


@contextmanager
def scaled_projections(
    model: nn.Module, anatomy: Anatomy, multiply: Callable[[nn.Module, Tensor], Tensor]
) -> Iterator[None]:
    """Scale heads of sites whose route is `projection`, for this block.

    `multiply(module, heads)` takes the module of the site and what its heads gave,
    `[batch, query, head, dim]`, and returns as much. Nothing is hung on other models.
    """
    sites = [site for site in anatomy.sites if site.route == "projection"]
    family = family_of(model) if sites else None
    if family is None:
        yield
        return
    heads = {model.get_submodule(site.module): site.heads for site in sites}

    def scale(attention: nn.Module, packed: Tensor) -> Tensor:
        apart = packed.unflatten(-1, (heads[attention], -1))
        return multiply(attention, apart).flatten(-2)

    with entering(heads, family, scale):
        yield


# --- Listen: see what the heads of every site give, and leave it alone --------------------------

#: Gets a site and what happened there; `output` is `[row, query, head, dim]`.
Hear = Callable[[Site, Attended], None]


@contextmanager
def listening(subject: Subject, hear: Hear) -> Iterator[None]:
    """Within the block, `hear` is shown every site of every forward of the model."""
    turns = Turns(subject.model, subject.anatomy)

    def part(module: nn.Module, attended: Attended) -> Tensor:
        hear(turns.next(module), attended)
        return attended.output

    def entering(module: nn.Module, heads: Tensor) -> Tensor:
        return part(module, Attended(heads, None, None))

    with ExitStack() as stack:
        stack.enter_context(locked(subject.model))
        stack.enter_context(turns.counted(subject.model))
        stack.enter_context(attached(subject.model, subject.anatomy, part))
        stack.enter_context(scaled_projections(subject.model, subject.anatomy, entering))
        yield
