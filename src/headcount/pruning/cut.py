"""Cut heads out of a model's weights, and write down the sizes that it has afterwards.

First which heads of each attention stay, and whether they can; then T5's shared position bias;
then weights, counts and the notes in the config.
"""

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
    OwnConfig,
    Part,
    Pick,
    Site,
    core_of,
    forget_bias,
    head_weights,
    joint_norms,
    layout_of,
    put,
    take_along,
)
from headcount.records import Head

# --- Which heads of each attention stay, and whether they can -----------------------------------
# Query heads of a group share the head of their keys and values. A group is pruned as a whole, and
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
    """What stays of every module that loses a head; raises for heads that only go together."""
    by_module: dict[str, list[Site]] = defaultdict(list)
    for site in anatomy.sites:
        by_module[site.module].append(site)
    gone = set(going)
    touched = [sites for sites in by_module.values() if gone & {h for s in sites for h in s.names}]
    return [_keep(sites, gone) for sites in touched]


def _keep(sites: list[Site], gone: set[Head]) -> Keep:
    """What stays of one module, which may serve several layers."""
    every = [torch.tensor([head not in gone for head in site.names]) for site in sites]
    site, stay = sites[0], every[0]
    everywhere = torch.stack(every).all(0)
    lacking = [
        str(one.names[place])
        for one, kept in zip(sites, every, strict=True)
        for place in (kept & ~everywhere).nonzero().flatten().tolist()
    ]
    if lacking:
        raise UsageError(
            f"{site.module} serves {len(sites)} layers with the same weights, so a head is cut "
            f"from all of them or from none; add {', '.join(lacking)}."
        )
    if not bool(stay.any()):
        first = torch.arange(site.heads) == 0
        return Keep(tuple(sites), first, torch.arange(site.kv_heads) == 0, dead=True)
    counts = stay.view(site.kv_heads, -1).sum(1)
    if len(set(counts[counts > 0].tolist())) > 1:
        raise UsageError(_uneven(site, gone, counts))
    return Keep(tuple(sites), stay, counts > 0)


def _uneven(site: Site, gone: set[Head], counts: Tensor) -> str:
    """Which groups are uneven, and what would work."""
    size = site.heads // site.kv_heads
    most = int(counts.max())
    broken = [g for g in range(site.kv_heads) if 0 < int(counts[g]) < most]
    groups = [site.names[g * size : (g + 1) * size] for g in broken]
    rest = [str(head) for group in groups for head in group if head not in gone]
    listed = "; ".join(", ".join(map(str, group)) for group in groups)
    return (
        f"Heads of {site.stack}.{site.layer} cannot go alone: {size} query heads share the keys of "
        f"a group, and the groups that stay must be equally large, but would have "
        f"{', '.join(map(str, counts.tolist()))} heads. Remove the broken group whole ({listed}: "
        f"add {', '.join(rest)}), or as many heads from every group."
    )


# --- T5's position bias -------------------------------------------------------------------------
# Where layers keep different heads, each gets a copy of the first layer's table, to be cut to its
# own heads, and computes its own bias. Cross-attention shares a bias of zeros in the same way.

_TABLE, _FLAG = "relative_attention_bias", "has_relative_attention_bias"


def part_biases(model: nn.Module, keeps: Sequence[Keep], sites: Sequence[Site]) -> list[Site]:
    """Give layers a bias of their own in stacks that will need it; these layers are returned."""
    parted = []
    for stack in dict.fromkeys(site.stack for site in sites):
        own = [site for site in sites if site.stack == stack and _shares(model, site)]
        if len(own) > 1 and len({_left(site, keeps) for site in own}) > 1:
            modules: list[Any] = [model.get_submodule(site.module) for site in own]
            first = next((module for module in modules if getattr(module, _FLAG)), None)
            for module in modules:
                if first is not None and not getattr(module, _FLAG):
                    setattr(module, _TABLE, deepcopy(getattr(first, _TABLE)))
                    setattr(module, _FLAG, True)
                module.register_forward_pre_hook(forget_bias, with_kwargs=True)
            parted += own
    return parted


def _shares(model: nn.Module, site: Site) -> bool:
    """Whether a layer is handed the bias of another, or hands its own on."""
    module = model.get_submodule(site.module)
    handed = "position_bias" in inspect.signature(module.forward).parameters  # not in UMT5
    # By name: a model that was loaded with the code in its folder has hooks of that code.
    names = [getattr(hook, "__name__", "") for hook in module._forward_pre_hooks.values()]
    own = forget_bias.__name__ in names
    return handed and hasattr(module, _FLAG) and not own


def _left(site: Site, keeps: Sequence[Keep]) -> tuple[Any, ...]:
    """What stays of a layer, for comparison."""
    for keep in keeps:
        if site in keep.sites:
            return (keep.dead, *keep.queries.tolist())
    return (False, *[True] * site.heads)


# --- Cut heads out of a model's weights ---------------------------------------------------------

#: What `headcount.models.modeling_headcount.fit` reads, and what `config.headcount` holds.
Sizes = dict[str, Any]


def cut_heads(model: nn.Module, keeps: list[Keep], sites: tuple[Site, ...]) -> None:
    """Remove heads in place, and note sizes and numbers in the model's config."""
    config = core_of(model).config
    heads = {f"{site.stack}.{site.layer}": list(site.indices) for site in sites}
    sizes: Sizes = {"heads": heads, "shapes": {}, "attributes": {}, "settings": {}, "own_bias": []}
    if sites[0].numbers is not None:  # else there are none yet, or those of another model
        # A model whose config says all sizes has its heads written down and no more.
        sizes |= getattr(config, KEY)
    for site in part_biases(model, keeps, sites):
        path = _within(model, site.module)
        sizes["own_bias"].append(path)
        table = getattr(model.get_submodule(site.module), _TABLE, None)
        if table is not None:  # cross-attention has none
            sizes["shapes"][f"{path}.{_TABLE}.weight"] = list(table.weight.shape)
            sizes["attributes"].setdefault(path, {})[_FLAG] = True
    for keep in keeps:
        with torch.no_grad():
            _cut_weights(model, keep, sizes)
        _cut_counts(model, keep, sizes)
        _cut_given(model, keep, sizes)
        _cut_norms(model, keep, sizes)
        for site in keep.sites:
            kept = zip(site.indices, keep.queries.tolist(), strict=True)
            left = [] if keep.dead else [index for index, stays in kept if stays]
            sizes["heads"][f"{site.stack}.{site.layer}"] = left
    _move_named_heads(model, keeps)
    setattr(config, KEY, sizes)
    take_along(model)


def _move_named_heads(model: Any, keeps: list[Keep]) -> None:
    """Heads that a generation config names by place (Whisper's word times) get new numbers."""
    settings: Any = getattr(model, "generation_config", None)
    named = getattr(settings, "alignment_heads", None)
    if not named:
        return
    stays = {
        site.layer: ([False] if keep.dead else keep.queries.tolist())
        for keep in keeps
        for site in keep.sites
        if site.stack == "cross"
    }
    left = [
        [layer, sum(stays[layer][:head]) if layer in stays else head]
        for layer, head in named
        if layer not in stays or (head < len(stays[layer]) and stays[layer][head])
    ]
    settings.alignment_heads = left or None


def _cut_weights(model: nn.Module, keep: Keep, sizes: Sizes) -> None:
    for place in head_weights(model, keep.sites[0]):
        path, _, leaf = place.name.rpartition(".")
        module = model.get_submodule(path)
        weight: Tensor = getattr(module, leaf)
        kept = place.kept(keep.queries, keep.keys).to(weight.device)
        value = weight.detach().index_select(place.axis, kept).contiguous()
        put(module, leaf, torch.zeros_like(value) if keep.dead else value)
        sizes["shapes"][_within(model, place.name)] = list(value.shape)


def _within(model: nn.Module, name: str) -> str:
    """A name seen from the bare model, so that it fits with any task head."""
    core = core_of(model)
    prefix = next(name for name, module in model.named_modules() if module is core)
    return name.removeprefix(f"{prefix}.") if prefix else name


def _cut_counts(model: nn.Module, keep: Keep, sizes: Sizes) -> None:
    """Set the numbers that modules keep of their heads; each must have had the old value."""
    site = keep.sites[0]

    def counts(queries: int, keys: int) -> dict[str, int]:
        width = queries * site.head_dim
        return {"q": queries, "k": keys, "group": queries // keys, "width": width}

    before = counts(site.heads, site.kv_heads)
    after = counts(int(keep.queries.sum()), int(keep.keys.sum()))
    for path, module in model.get_submodule(site.module).named_modules(prefix=site.module):
        for name, meaning in COUNTS.items():
            if vars(module).get(name) == before[meaning]:
                setattr(module, name, after[meaning])
                sizes["attributes"].setdefault(_within(model, path), {})[name] = after[meaning]
    if layout_of(model, site).asks_config:
        # A module that reads its config for the number of heads gets one of its own.
        asking: Any = model.get_submodule(site.module)
        own = {"num_attention_heads": after["q"], "num_key_value_heads": after["k"]}
        asking.config = OwnConfig(getattr(asking.config, "_base", asking.config), own)
        sizes["settings"][_within(model, site.module)] = own


def _cut_given(model: nn.Module, keep: Keep, sizes: Sizes) -> None:
    """Let a module take its heads' part of a bias that is made for all heads and all layers."""
    name, site = GIVEN.get(str(core_of(model).config.model_type)), keep.sites[0]
    if name is None:
        return
    module = model.get_submodule(site.module)
    hooks: list[Any] = list(module._forward_pre_hooks.values())
    pick = next((hook for hook in hooks if type(hook).__name__ == Pick.__name__), None)
    if pick is None:
        pick = Pick(name, list(range(site.heads)), site.heads)
        module.register_forward_pre_hook(pick, with_kwargs=True)
    pick.kept = [one for one, stays in zip(pick.kept, keep.queries.tolist(), strict=True) if stays]
    picks = sizes.setdefault("picks", {})
    picks[_within(model, site.module)] = [name, pick.kept, pick.total]


def _cut_norms(model: nn.Module, keep: Keep, sizes: Sizes) -> None:
    """Let only the heads that are left go on from a norm over all heads together."""
    site = keep.sites[0]
    for letter, path in joint_norms(model, site).items():
        norm: Any = model.get_submodule(f"{site.module}.{path}")
        part = next((h for h in norm._forward_hooks.values() if isinstance(h, Part)), None)
        if part is None:
            part = Part(list(range(len(norm.weight))))
            norm.register_forward_hook(part)
        stay = (keep.queries if letter == "q" else keep.keys).repeat_interleave(site.head_dim)
        part.kept = [one for one, stays in zip(part.kept, stay.tolist(), strict=True) if stays]
        sizes.setdefault("parts", {})[_within(model, f"{site.module}.{path}")] = part.kept
