"""Which heads of each attention stay, and whether they can: groups of keys, shared layers.

Query heads of one group share the head of their keys and values. A group can go as a whole, and
every group that stays must have as many query heads as any other.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from headcount.errors import UsageError
from headcount.heads import Head
from headcount.models.anatomy import Anatomy
from headcount.models.site import Site

__all__ = ["Keep", "keep_at", "keeps"]


@dataclass(frozen=True)
class Keep:
    """What stays of one attention module: true or false a query head and a key head.

    An attention that loses all its heads keeps one of each, dead: its weights are zero. So
    a cache still counts its tokens, and the layer keeps its residual and its bias.
    """

    sites: tuple[Site, ...]
    queries: Tensor
    keys: Tensor
    dead: bool = False


def keeps(anatomy: Anatomy, going: Sequence[Head]) -> list[Keep]:
    """What stays of every module that loses a head; raises for what cannot go alone."""
    by_module: dict[str, list[Site]] = defaultdict(list)
    for site in anatomy.sites:
        by_module[site.module].append(site)
    gone = set(going)
    touched = [sites for sites in by_module.values() if gone & {h for s in sites for h in s.names}]
    return [_keep(sites, gone) for sites in touched]


def _keep(sites: list[Site], gone: set[Head]) -> Keep:
    stay = [torch.tensor([head not in gone for head in site.names]) for site in sites]
    if any(not torch.equal(stay[0], other) for other in stay[1:]):
        raise UsageError(_shared(sites, stay))
    return keep_at(tuple(sites), stay[0])


def _shared(sites: list[Site], stay: list[Tensor]) -> str:
    """Why heads of a shared module go together."""
    everywhere = torch.stack(stay).all(0)
    lacking = [
        str(site.names[place])
        for site, kept in zip(sites, stay, strict=True)
        for place in (kept & ~everywhere).nonzero().flatten().tolist()
    ]
    return (
        f"{sites[0].module} serves {len(sites)} layers with the same weights, so a head goes from "
        f"all of them or from none; add {', '.join(lacking)}."
    )


def keep_at(sites: tuple[Site, ...], stay: Tensor) -> Keep:
    """What stays of one module, given which of its query heads do."""
    site = sites[0]
    if not bool(stay.any()):
        first = torch.arange(site.heads) == 0
        return Keep(sites, first, torch.arange(site.kv_heads) == 0, dead=True)
    counts = stay.view(site.kv_heads, -1).sum(1)
    if len(set(counts[counts > 0].tolist())) > 1:
        raise UsageError(_uneven(site, stay, counts))
    return Keep(sites, stay, counts > 0)


def _uneven(site: Site, stay: Tensor, counts: Tensor) -> str:
    """Which groups are uneven, and what would work."""
    size = site.heads // site.kv_heads
    most = int(counts.max())
    broken = [g for g in range(site.kv_heads) if 0 < int(counts[g]) < most]
    groups = [site.names[g * size : (g + 1) * size] for g in broken]
    there = [head for head, kept in zip(site.names, stay.tolist(), strict=True) if kept]
    rest = [str(head) for group in groups for head in group if head in set(there)]
    said = "; ".join(", ".join(map(str, group)) for group in groups)
    return (
        f"Heads of {site.stack}.{site.layer} cannot go alone: {size} query heads share the keys of "
        f"a group, and the groups that stay must be equally large, but would have "
        f"{', '.join(map(str, counts.tolist()))} heads. Remove the broken group whole ({said}: add "
        f"{', '.join(rest)}), or as many heads from every group."
    )
