"""Cut heads out of a model's weights, and write down the sizes that it has afterwards."""

from __future__ import annotations

import inspect
from collections import defaultdict
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from headcount.errors import UsageError
from headcount.models import (
    COUNTS,
    GIVEN,
    KEY,
    Anatomy,
    HeadWeight,
    OwnConfig,
    Pick,
    Site,
    core_of,
    forget_bias,
    head_weights,
    layout_of,
    put,
)
from headcount.records import Head

# --- Which heads of each attention stay, and whether they can -----------------------------------
# Query heads of one group share the head of their keys and values. A group can go as a whole, and
# every group that stays must have as many query heads as any other.


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


# --- T5's position bias -------------------------------------------------------------------------
# Where layers keep different heads, each gets a copy of the first layer's table, to be cut to its
# own heads, and computes its own bias. Cross-attention shares a bias of zeros in the same way.

_FLAG_SHARED_BIAS = "has_relative_attention_bias"
_TABLE_SHARED_BIAS = "relative_attention_bias"


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
    return handed and hasattr(module, _FLAG_SHARED_BIAS) and not own


def _left(site: Site, keeps: Sequence[Keep]) -> tuple[Any, ...]:
    """What stays of a layer, for comparison."""
    for keep in keeps:
        if site in keep.sites:
            return (keep.dead, *keep.queries.tolist())
    return (False, *[True] * site.heads)


def _part(model: nn.Module, sites: Sequence[Site]) -> None:
    modules: list[Any] = [model.get_submodule(site.module) for site in sites]
    first = next((module for module in modules if getattr(module, _FLAG_SHARED_BIAS)), None)
    for module in modules:
        if first is not None and not getattr(module, _FLAG_SHARED_BIAS):
            setattr(module, _TABLE_SHARED_BIAS, deepcopy(getattr(first, _TABLE_SHARED_BIAS)))
            setattr(module, _FLAG_SHARED_BIAS, True)
        module.register_forward_pre_hook(forget_bias, with_kwargs=True)


# --- Cut heads out of a model's weights ---------------------------------------------------------

_TABLE, _FLAG = "relative_attention_bias", "has_relative_attention_bias"

#: What `headcount.models.resize.fit` reads, and what `config.headcount` holds.
Sizes = dict[str, Any]


def cut(model: nn.Module, keeps: list[Keep], sites: tuple[Site, ...]) -> None:
    """Remove heads in place, and note sizes and numbers in the model's config."""
    sizes = _sizes(model, sites)
    for site in part_biases(model, keeps, sites):
        _note_bias(model, site, sizes)
    for keep in keeps:
        with torch.no_grad():
            _cut_weights(model, keep, sizes)
        _cut_counts(model, keep, sizes)
        _cut_given(model, keep, sizes)
        _number(keep, sizes)
    setattr(core_of(model).config, KEY, sizes)


def _note_bias(model: nn.Module, site: Site, sizes: Sizes) -> None:
    """Write down that a layer computes its own position bias."""
    path = _within(model, site.module)
    module = model.get_submodule(site.module)
    sizes["own_bias"].append(path)
    table = getattr(module, _TABLE, None)
    if table is not None:  # cross-attention has none
        sizes["shapes"][f"{path}.{_TABLE}.weight"] = list(table.weight.shape)
        sizes["attributes"].setdefault(path, {})[_FLAG] = True


def _sizes(model: nn.Module, sites: tuple[Site, ...]) -> Sizes:
    """What was written down before, if it is this model's; or the start: every head is there."""
    known: Sizes | None = getattr(core_of(model).config, KEY, None)
    if known is not None and sites[0].numbers is not None:
        return known
    heads = {f"{site.stack}.{site.layer}": list(site.indices) for site in sites}
    return {"heads": heads, "shapes": {}, "attributes": {}, "settings": {}, "own_bias": []}


def _number(keep: Keep, sizes: Sizes) -> None:
    kept = keep.queries.tolist()
    for site in keep.sites:
        left = (
            [] if keep.dead else [i for i, stays in zip(site.indices, kept, strict=True) if stays]
        )
        sizes["heads"][f"{site.stack}.{site.layer}"] = left


def _cut_weights(model: nn.Module, keep: Keep, sizes: Sizes) -> None:
    for place in head_weights(model, keep.sites[0]):
        module, leaf = _owner(model, place)
        weight: Tensor = getattr(module, leaf)
        kept = place.kept(keep.queries, keep.keys).to(weight.device)
        value = weight.detach().index_select(place.axis, kept).contiguous()
        put(module, leaf, torch.zeros_like(value) if keep.dead else value)
        sizes["shapes"][_within(model, place.name)] = list(value.shape)


def _owner(model: nn.Module, place: HeadWeight) -> tuple[nn.Module, str]:
    path, _, leaf = place.name.rpartition(".")
    return model.get_submodule(path), leaf


def _within(model: nn.Module, name: str) -> str:
    """A name seen from the bare model, so that any task head may stand around it later."""
    core = core_of(model)
    prefix = next(name for name, module in model.named_modules() if module is core)
    return name.removeprefix(f"{prefix}.") if prefix else name


def _cut_counts(model: nn.Module, keep: Keep, sizes: Sizes) -> None:
    """Set the numbers that modules keep of their heads; each must have been what it says."""
    site = keep.sites[0]
    before = _counts(site.heads, site.kv_heads, site.head_dim)
    after = _counts(int(keep.queries.sum()), int(keep.keys.sum()), site.head_dim)
    for path, module in model.get_submodule(site.module).named_modules(prefix=site.module):
        for name, meaning in COUNTS.items():
            if vars(module).get(name) == before[meaning]:
                setattr(module, name, after[meaning])
                sizes["attributes"].setdefault(_within(model, path), {})[name] = after[meaning]
    if layout_of(model, site).asks_config:
        _cut_settings(model, site.module, after, sizes)


def _cut_given(model: nn.Module, keep: Keep, sizes: Sizes) -> None:
    """Let a module take its heads' part of a bias that is made for all heads and all layers."""
    name, site = GIVEN.get(str(core_of(model).config.model_type)), keep.sites[0]
    if name is None:
        return
    module = model.get_submodule(site.module)
    hooks = module._forward_pre_hooks.values()
    pick = next((hook for hook in hooks if isinstance(hook, Pick)), None)
    if pick is None:
        pick = Pick(name, list(range(site.heads)), site.heads)
        module.register_forward_pre_hook(pick, with_kwargs=True)
    pick.kept = [one for one, stays in zip(pick.kept, keep.queries.tolist(), strict=True) if stays]
    picks = sizes.setdefault("picks", {})
    picks[_within(model, site.module)] = [name, pick.kept, pick.total]


def _counts(queries: int, keys: int, dim: int) -> dict[str, int]:
    return {"q": queries, "k": keys, "group": queries // keys, "width": queries * dim}


def _cut_settings(model: nn.Module, path: str, after: dict[str, int], sizes: Sizes) -> None:
    """Give a module that asks its config for the number of heads one of its own."""
    module: Any = model.get_submodule(path)
    own = {"num_attention_heads": after["q"], "num_key_value_heads": after["k"]}
    module.config = OwnConfig(getattr(module.config, "_base", module.config), own)
    sizes["settings"][_within(model, path)] = own
