"""Attention sites of families outside the interface, found by running the model once.

The row of the family says where to listen. What is heard must agree with the maps that the
model gives of the same forward, in number, shape and sum; a setting that changes what a map
is, or a version of transformers that moved a module, ends in a refusal, not in wrong figures.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from headcount.errors import UnsupportedModel
from headcount.models.causal import looks_back_only
from headcount.models.entrance import entering
from headcount.models.families.outside import OUTSIDE, REFUSED, Family
from headcount.models.own_maps import OwnMaps, own_maps
from headcount.models.probe import core_of, explained, probe_inputs, quiet_arguments
from headcount.models.rest import at_rest
from headcount.models.site import Site

__all__ = ["family_of", "outside_sites", "window_of"]


def outside_sites(model: nn.Module) -> list[Site]:
    """The sites of a family outside the interface; none for a family inside it.

    >>> from transformers import GPTJConfig, GPTJModel
    >>> config = GPTJConfig(n_embd=16, n_layer=1, n_head=4, rotary_dim=4, vocab_size=32)
    >>> [(site.stack, site.heads, site.module) for site in outside_sites(GPTJModel(config))]
    [('dec', 4, 'h.0.attn')]
    """
    core = core_of(model)
    family = family_of(core)
    if family is None:
        _refuse_parts(core)
        return []
    with at_rest(core), torch.no_grad(), explained(core):
        calls, recorded = _listen(core, family)
    names = {id(module): name for name, module in model.named_modules()}
    return _number(core, family, calls, recorded, names)


def family_of(model: nn.Module) -> Family | None:
    """The row of the model's family; none inside the interface; an error if it is refused."""
    core = core_of(model)
    kind = _kind(core)
    if kind in REFUSED:
        raise UnsupportedModel(
            f"{type(core).__name__} (model type '{kind}') {REFUSED[kind]}; headcount works on "
            "softmax attention with one map [query, key] a head."
        )
    family = OUTSIDE.get(kind)
    if family is not None and family.needs is not None:
        _check_setting(core, *family.needs)
    return family


def window_of(model: nn.Module, site: Site, maps: Tensor) -> Tensor | None:
    """The keys that each query of a site may see, true or false, where layers differ in it."""
    family = family_of(model)
    if family is None or not family.window:
        return None
    buffer: Tensor = getattr(model.get_submodule(site.module), family.window)
    return buffer[:, :, : maps.shape[-2], : maps.shape[-1]]


def _kind(module: nn.Module) -> str:
    return str(getattr(getattr(module, "config", None), "model_type", ""))


def _check_setting(core: nn.Module, name: str, wanted: object) -> None:
    found = getattr(core, name, getattr(core.config, name, wanted))
    if found != wanted:
        raise UnsupportedModel(
            f"{type(core).__name__} has {name}={found!r}, and the heads of '{_kind(core)}' models "
            f"are reached soundly only with {name}={wanted!r}."
        )


def _refuse_parts(core: nn.Module) -> None:
    """Raise for a model inside the interface that holds a part outside: half would be missed."""
    for part in core.modules():
        kind = _kind(part)
        if part is not core and isinstance(part, PreTrainedModel) and kind in (OUTSIDE | REFUSED):
            raise UnsupportedModel(
                f"{type(core).__name__} holds a {type(part).__name__} (model type '{kind}'), which "
                "does not speak transformers' attention interface, beside parts that may; "
                "pass one of the two parts alone."
            )


@dataclass(frozen=True)
class _Call:
    """One attention that was heard: its module, and what entered its output projection."""

    attention: nn.Module
    heads: Tensor


def _listen(core: PreTrainedModel, family: Family) -> tuple[list[_Call], OwnMaps]:
    """Run a few tokens twice, plainly and for the maps; both must give the same."""
    calls: list[_Call] = []

    def note(attention: nn.Module, heads: Tensor) -> Tensor:
        calls.append(_Call(attention, heads))
        return heads

    inputs = probe_inputs(core) | quiet_arguments(core)
    plain = core(**inputs)[0]
    with entering(_attentions(core, family), family, note):
        recorded = own_maps(core, inputs)
    _check_same(core, plain, recorded.first)
    return calls, recorded


def _attentions(core: nn.Module, family: Family) -> list[nn.Module]:
    """The attention modules; a flash variant subclasses the class that the row names."""
    return [
        module
        for module in core.modules()
        if family.attention in {each.__name__ for each in type(module).__mro__}
    ]


def _check_same(core: nn.Module, plain: Tensor, recorded: Tensor) -> None:
    room = 1e-3 if plain.dtype in (torch.float32, torch.float64) else 5e-2
    gap = (plain - recorded).abs().max() / plain.abs().max().clamp_min(1e-6)
    if not gap <= room:
        raise UnsupportedModel(
            f"{type(core).__name__} gives other outputs when it is asked for its attention maps "
            f"(apart by {float(gap):.1%}), so the maps are not those of the model as it runs."
        )


def _number(
    core: nn.Module, family: Family, calls: list[_Call], recorded: OwnMaps, names: dict[int, str]
) -> list[Site]:
    """Pair each call with its map, and give it its stack and its layer."""
    if not calls:
        raise UnsupportedModel(
            f"{type(core).__name__} ran without once calling the {family.projection} of a "
            f"{family.attention}, where the heads of '{_kind(core)}' models are looked for."
        )
    sides = [_side(core, names[id(call.attention)]) for call in calls]
    counts = Counter(sides)
    maps = {side: iter(recorded.of(side or "enc", layers)) for side, layers in counts.items()}
    layers: Counter[str | None] = Counter()
    turns: Counter[int] = Counter()
    sites = []
    for call, side in zip(calls, sides, strict=True):
        own, key = next(maps[side]), id(call.attention)
        _check_map(core, call, own)
        heard = _heard(family, call, own, side)
        sites.append(replace(heard, layer=layers[side], module=names[key], call=turns[key]))
        layers[side] += 1
        turns[key] += 1
    return sites


def _side(core: nn.Module, name: str) -> str | None:
    """The stack of an encoder-decoder's attention, by its name; none where there is one stack."""
    if not core.config.is_encoder_decoder:  # type: ignore[union-attr]
        return None
    parts = name.split(".")
    if parts[-1] == "encoder_attn":
        return "cross"
    return "enc" if "encoder" in parts else "dec"


def _check_map(core: nn.Module, call: _Call, own: Tensor) -> None:
    rows, queries, width = call.heads.shape
    sums = own.sum(-1, dtype=torch.float32)
    fits = (own.shape[0], own.shape[2], width % own.shape[1]) == (rows, queries, 0)
    if not fits or not torch.allclose(sums, torch.ones_like(sums), atol=1e-2):
        raise UnsupportedModel(
            f"{type(core).__name__} gave attention maps of shape {list(own.shape)} whose rows sum "
            f"to {float(sums.min()):.2f}-{float(sums.max()):.2f}, where heads of shape "
            f"{list(call.heads.shape)} came out; maps are [batch, head, query, key] and rows sum "
            "to 1. Try attn_implementation='eager'."
        )


def _heard(family: Family, call: _Call, own: Tensor, side: str | None) -> Site:
    """The site as far as one call shows it; its name and number are the caller's to give."""
    causal = side != "cross" and looks_back_only(own)
    heads = own.shape[1]
    return Site(
        stack=side or ("dec" if causal else "enc"),
        layer=0,
        heads=heads,
        kv_heads=int(getattr(call.attention, family.kv_heads, heads)),
        head_dim=call.heads.shape[-1] // heads,
        module="",
        causal=causal,
        route="projection",
    )
