"""Cut heads out of a model's weights, and write down the sizes that it has afterwards."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from headcount.models.families.projections import COUNTS, GIVEN
from headcount.models.fit import OwnConfig, Pick, put
from headcount.models.head_numbers import KEY
from headcount.models.probe import core_of
from headcount.models.projections import Place, places_of, row_of
from headcount.models.site import Site
from headcount.pruning.keep import Keep
from headcount.pruning.shared_bias import part_biases

__all__ = ["Sizes", "cut"]

_TABLE, _FLAG = "relative_attention_bias", "has_relative_attention_bias"

#: What `headcount.models.fit.fit` reads, and what `config.headcount` holds.
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
    for place in places_of(model, keep.sites[0]):
        module, leaf = _owner(model, place)
        weight: Tensor = getattr(module, leaf)
        kept = place.kept(keep.queries, keep.keys).to(weight.device)
        value = weight.detach().index_select(place.axis, kept).contiguous()
        put(module, leaf, torch.zeros_like(value) if keep.dead else value)
        sizes["shapes"][_within(model, place.name)] = list(value.shape)


def _owner(model: nn.Module, place: Place) -> tuple[nn.Module, str]:
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
    if row_of(model, site).asks_config:
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
