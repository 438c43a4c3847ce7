"""The seam: one attention function that everything in headcount reads and scales through.

It is registered with transformers' AttentionInterface once per base implementation, together
with that implementation's mask function. It calls the base, then shows each attached part
what happened; a part may change the head outputs `[batch, query, head, dim]`, which lie side
by side here just before the output projection. Families outside the interface are reached at
that projection instead.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from headcount import plugins
from headcount.errors import ModelError, UsageError
from headcount.models import (
    Site,
    Subject,
    base_function,
    locked,
    on_exit,
    own_thread,
    register,
    switched,
)

PREFIX = "headcount-"

#: The implementations whose masks a runner can read.
READABLE = ("eager", "sdpa")


@dataclass(frozen=True)
class Attended:
    """What one attention call shows: head outputs, and the map where the base computes one.

    `value` is `[row, key head, key, dim]` and `dropout` the share of the map that is dropped;
    neither is known outside the interface.
    """

    output: Tensor
    weights: Tensor | None = None
    mask: Tensor | None = None
    value: Tensor | None = None
    dropout: float = 0.0

    def map_of(self, site: Site) -> Tensor:
        """The attention weights, or an error that names the site."""
        if self.weights is None:
            raise ModelError(
                f"The attention at {site.stack}.{site.layer} ({site.module}) gave no weights; "
                "its eager implementation must return them."
            )
        return self.weights


#: Something on the seam: called at every site with its module and what the heads gave, it returns
#: the head outputs to use.
Part = Callable[[nn.Module, Attended], Tensor]

#: Parts by the id of the attention module they listen to, in the order they were attached.
_PARTS: dict[int, list[Part]] = defaultdict(list)

#: By the id of a module that has parts or runners, whether a forward is of the thread they are of.
_OURS: dict[int, Callable[[], bool]] = {}

#: Something that runs the attention itself, to see more than what the heads give: called with the
#: module, the function that would have run, and its arguments; it returns outputs and map.
Runner = Callable[..., tuple[Tensor, Tensor | None]]

#: Runners by the id of the attention module they run, the innermost first.
_RUNNERS: dict[int, list[Runner]] = defaultdict(list)


def attend(
    module: nn.Module, query: Tensor, key: Tensor, value: Tensor, attention_mask: Any, **kwargs: Any
) -> tuple[Tensor, Tensor | None]:
    """Attention as the model does it, then every attached part in turn."""
    config: Any = module.config
    base = config._attn_implementation.removeprefix(PREFIX)
    function = base_function(module, base)
    ours = _OURS.get(id(module))
    if ours is not None and not ours():
        return function(module, query, key, value, attention_mask, **kwargs)
    for runner in _RUNNERS.get(id(module), ()):
        function = partial(runner, function)
    output, weights = function(module, query, key, value, attention_mask, **kwargs)
    if not _PARTS.get(id(module)):
        return output, weights
    dropout = float(kwargs.get("dropout") or 0.0)
    return shown(module, Attended(output, weights, attention_mask, value, dropout)), weights


def alone(runner: Runner) -> bool:
    """Whether nothing but this runner is on the seam of any model."""
    return not _PARTS and all(own == [runner] for own in _RUNNERS.values())


def shown(module: nn.Module, attended: Attended) -> Tensor:
    """What the heads gave, after every attached part in turn has seen or changed it."""
    for part in _PARTS.get(id(module), ()):
        attended = replace(attended, output=part(module, attended))
    return attended.output


@contextmanager
def attached(
    subject: Subject,
    part: Part | None = None,
    turns: Turns | None = None,
    *,
    maps: bool = False,
    runner: Runner | None = None,
) -> Iterator[None]:
    """Attach a part to every site of a model for this block; the model is as before on any exit.

    `turns` start afresh with every forward. With `maps` the family's own eager function is used,
    since the fused ones give no weights. A `runner` runs the attention in place of a part; it and
    `maps` leave sites outside the interface alone, since their maps are out of reach.
    """
    model, sites = subject.model, subject.anatomy.sites
    names = sorted({site.module for site in sites if site.route == "interface"})
    modules = [model.get_submodule(name) for name in names]
    left = maps or part is None
    outside = [] if left else [site for site in sites if site.route == "projection"]
    heads = {model.get_submodule(site.module): site.heads for site in outside}
    ours = own_thread()
    hung: list[tuple[dict[int, list[Any]], Any]] = []
    hung += [(_PARTS, part)] if part is not None else []
    hung += [(_RUNNERS, runner)] if runner is not None else []

    def rename(own: str) -> str:
        if own.startswith(PREFIX) and not maps:
            return own
        base = own.removeprefix(PREFIX)
        # A runner reads the mask, which each implementation has in a form of its own.
        base = "eager" if maps or (runner is not None and base not in READABLE) else base
        register(PREFIX + base, attend, mask_like=base)
        return PREFIX + base

    def detach() -> None:
        for module in modules:
            for place, one in hung:
                # By what it is, since a part may be equal to another, or refuse to be compared.
                left = [other for other in place.get(id(module), ()) if other is not one]
                if left:
                    place[id(module)] = left
                else:
                    place.pop(id(module), None)
            if not (id(module) in _PARTS or id(module) in _RUNNERS):
                _OURS.pop(id(module), None)

    def enter(module: nn.Module, packed: Tensor) -> Tensor:
        apart = packed.unflatten(-1, (heads[module], -1))
        assert part is not None
        return part(module, Attended(apart)).flatten(-2)

    room = plugins.get("parts", "outside") if outside else None
    with (
        locked(model),
        nullcontext() if turns is None else turns.counted(model),
        # Outside the interface a name it does not know would change the model.
        switched(model, rename) if modules else nullcontext(),
        on_exit(detach),
        room.entering(heads, room.family_of(model), enter) if room else nullcontext(),
    ):
        for module in modules:
            _OURS[id(module)] = ours
            for place, one in hung:
                place[id(module)].append(one)
        yield


@contextmanager
def hooked(
    modules: Collection[nn.Module], hook: Callable[..., Any], *, after: bool = False, **how: bool
) -> Iterator[None]:
    """Within the block a hook runs before, or after, every forward that this thread makes.

    It is taken off by what it is, not by a handle: Ctrl-C may come before there is one.
    """
    ours = own_thread()

    def own(*args: Any) -> Any:
        return hook(*args) if ours() else None

    kind = "_forward_hooks" if after else "_forward_pre_hooks"

    def unhook() -> None:
        for module in modules:
            for number, hung in list(getattr(module, kind).items()):
                if hung is own:
                    for more in ("", "_with_kwargs", "_always_called"):
                        getattr(module, kind + more, {}).pop(number, None)

    with on_exit(unhook):
        for module in modules:
            register = module.register_forward_hook if after else module.register_forward_pre_hook
            register(own, **how)
        yield


class Turns:
    """Which site an attention call is: a module that serves several layers is called in turn."""

    def __init__(self, subject: Subject) -> None:
        self._sites: dict[int, list[Site]] = defaultdict(list)
        for site in sorted(subject.anatomy.sites, key=lambda site: site.call):
            self._sites[id(subject.model.get_submodule(site.module))].append(site)
        self._turn: dict[int, int] = defaultdict(int)

    def next(self, module: nn.Module) -> Site:
        """The site of this call."""
        sites = self._sites[id(module)]
        if len(sites) == 1:
            return sites[0]
        if torch._C._current_graph_task_id() != -1:
            raise UsageError(
                f"{sites[0].module} serves several layers and is being recomputed in backward(), "
                "where its layer cannot be known; turn off checkpointing for this model."
            )
        turn = self._turn[id(module)]
        self._turn[id(module)] = (turn + 1) % len(sites)
        return sites[turn]

    def counted(self, model: nn.Module) -> AbstractContextManager[None]:
        """Start every forward of the model afresh, also after one that broke off half way."""
        shared = any(len(sites) > 1 for sites in self._sites.values())
        return hooked([model], self._reset) if shared else nullcontext()

    def _reset(self, *_: Any) -> None:
        self._turn.clear()


@contextmanager
def listening(subject: Subject, hear: Callable[[Site, Attended], None]) -> Iterator[None]:
    """Within the block, `hear` is shown every site of every forward; nothing is changed."""
    turns = Turns(subject)

    def part(module: nn.Module, attended: Attended) -> Tensor:
        hear(turns.next(module), attended)
        return attended.output

    with attached(subject, part, turns):
        yield
