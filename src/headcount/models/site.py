"""One place in a model where heads lie side by side."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from headcount.records import Head

# --- One place in a model where heads lie side by side ------------------------------------------


@dataclass(frozen=True)
class Site:
    """One call of one attention module: its stack, layer and shape.

    `module` is the dotted name inside the model and `call` the n-th call of that module in a
    forward. `route` says how heads are reached: through the attention interface, or through
    the input of the output projection (`projection`, families outside the interface).
    `numbers` are the numbers of its heads where some were removed: names are for life.

    >>> [str(head) for head in Site("enc", 0, 2, 2, 8, "attention", numbers=(0, 3)).names]
    ['enc.0.0', 'enc.0.3']
    """

    stack: str
    layer: int
    heads: int
    kv_heads: int
    head_dim: int
    module: str
    call: int = 0
    causal: bool = False
    route: str = "interface"
    numbers: tuple[int, ...] | None = None

    def __hash__(self) -> int:  # of what tells sites apart: sites are keys everywhere
        return hash((self.module, self.call, self.heads))

    @property
    def indices(self) -> tuple[int, ...]:
        """The number of each head, in the order they lie side by side."""
        return tuple(range(self.heads)) if self.numbers is None else self.numbers

    @property
    def names(self) -> list[Head]:
        """The heads at this site."""
        return [Head(self.stack, self.layer, index) for index in self.indices]


@dataclass(frozen=True)
class SiteGroup(Site):
    """Sites of one stack whose heads are looked at together, side by side.

    >>> sites = [Site("enc", layer, 2, 2, 8, f"layer.{layer}") for layer in range(3)]
    >>> SiteGroup.of(sites).heads
    6
    """

    members: tuple[Site, ...] = ()

    __hash__ = Site.__hash__

    @classmethod
    def of(cls, sites: Sequence[Site]) -> Site:
        """The group of several sites; one site is itself."""
        if len(sites) == 1:
            return sites[0]
        first = sites[0]
        heads, kv_heads = sum(s.heads for s in sites), sum(s.kv_heads for s in sites)
        return cls(
            first.stack,
            first.layer,
            heads,
            kv_heads,
            first.head_dim,
            first.module,
            causal=first.causal,
            route=first.route,
            members=tuple(sites),
        )


def members_of(site: Site) -> tuple[Site, ...]:
    """The sites of a group; a single site is its own."""
    return site.members if isinstance(site, SiteGroup) else (site,)


# --- Whether attention is causal, by its maps ---------------------------------------------------


def is_causal(maps: Tensor) -> bool:
    """Whether no query of square maps `[.., query, key]` puts weight on a later key.

    >>> is_causal(torch.tensor([[1.0, 0.0], [0.5, 0.5]]))
    True
    >>> is_causal(torch.tensor([[1.0]]))    # one token shows nothing
    False
    """
    later = torch.ones(maps.shape[-2:], dtype=torch.bool, device=maps.device).triu(1)
    return maps.shape[-2] > 1 and not bool(maps[..., later].any())


# --- Which layer of its stack a module is -------------------------------------------------------


def layer_numbers(modules: Sequence[str]) -> list[int]:
    """A layer number for each attention module of a stack, given in the order they run.

    The number in the names that differs from module to module, so that a model in which only
    some layers attend keeps its own numbers; the order where names do not show it.

    >>> layer_numbers(["layers.1.attn", "layers.3.attn"])
    [1, 3]
    >>> layer_numbers(["block.0.layer.1.attn", "block.1.layer.1.attn"])
    [0, 1]
    >>> layer_numbers(["shared.0.attn", "shared.0.attn"]), layer_numbers(["layers.1.attn"])
    ([0, 1], [1])
    """
    if len(modules) == 1:  # the only layer of a hybrid that attends
        numbers = [int(part) for part in modules[0].split(".") if part.isdigit()]
        return numbers[:1] or [0]
    rows = [[int(part) for part in re.findall(r"\d+", name)] for name in modules]
    if len({len(row) for row in rows}) == 1:
        columns = [list(column) for column in zip(*rows, strict=True)]
        differing = [column for column in columns if len(set(column)) > 1]
        if len(differing) == 1 and len(set(differing[0])) == len(modules):
            return differing[0]
    return list(range(len(modules)))
