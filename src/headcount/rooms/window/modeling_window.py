"""Decoders of which some key heads keep the first tokens and a ring of the last ones.

This file needs torch and transformers only, and nothing of headcount: a saved model carries a copy
of it. Keys and values of restricted heads stop growing, in `generate` as in any forward with a
cache; the other heads keep all. `config.window` says how many tokens, and which key heads of each
layer (DuoAttention's split: Xiao et al. 2025).
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import torch
import transformers
from torch import Tensor
from transformers.cache_utils import DynamicCache, DynamicLayer
from transformers.masking_utils import AttentionMaskInterface, sdpa_mask
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS, AttentionInterface

#: What this way to attend is called.
NAME = "headcount_window"
#: Queries that restricted heads of a long text attend with at once, at least.
_CHUNK = 256


class Split(NamedTuple):
    """Keys, or values, of one call: those of full heads, and the layer that has the others."""

    full: Tensor
    layer: WindowLayer


class WindowLayer(DynamicLayer):
    """The cache of one layer: full key heads grow, the others keep `first` and `last` tokens."""

    is_croppable = False

    def __init__(self, near: list[int], first: int, last: int) -> None:
        super().__init__()
        self.near, self.first, self.last = near, first, last
        self.length = 0

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        """Nothing is kept yet."""
        super().lazy_initialization(key_states, value_states)
        heads, rows, device = key_states.shape[1], key_states.shape[0], key_states.device
        self.full = [head for head in range(heads) if head not in set(self.near)]
        self.keys, self.values = key_states[:, self.full, :0], value_states[:, self.full, :0]
        self.near_keys = key_states[:, self.near, :0]
        self.near_values = value_states[:, self.near, :0]
        #: The place in the text of every near key, and where each row's text begins.
        self.places = torch.zeros(rows, 0, dtype=torch.long, device=device)
        self.start: Tensor | None = None

    def update(
        self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any
    ) -> tuple[Any, Any]:
        """Take in new tokens; near ones are cut by the attention, which knows the mask."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        new = torch.arange(self.length, self.length + key_states.shape[2], device=self.device)
        self.length += key_states.shape[2]
        self.keys = torch.cat([self.keys, key_states[:, self.full]], dim=2)
        self.values = torch.cat([self.values, value_states[:, self.full]], dim=2)
        self.near_keys = torch.cat([self.near_keys, key_states[:, self.near]], dim=2)
        self.near_values = torch.cat([self.near_values, value_states[:, self.near]], dim=2)
        self.places = torch.cat([self.places, new.expand(len(self.places), -1)], dim=1)
        return Split(self.keys, self), Split(self.values, self)

    def get_seq_length(self) -> int:
        """Tokens seen so far."""
        return self.length

    def picked(self, low: int) -> tuple[Tensor, Tensor, Tensor]:
        """Near keys, values and places of the first tokens and of those from `low` on.

        A first token that comes twice has the place -1 the second time, which no query sees.
        """
        assert self.start is not None
        firsts = self.start[:, None] + torch.arange(self.first, device=self.device)
        at = (self.places[:, :, None] == firsts[:, None]).long().argmax(1)
        there = self.places.gather(1, at) == firsts
        head = torch.where(there, firsts, -1)
        tail = self.places[:, low:]
        tail = tail.masked_fill((tail >= self.start[:, None]) & (tail <= firsts[:, -1:]), -1)
        index = at[:, None, :, None].expand(-1, len(self.near), -1, self.near_keys.shape[-1])
        keys = torch.cat([self.near_keys.gather(2, index), self.near_keys[:, :, low:]], dim=2)
        values = torch.cat([self.near_values.gather(2, index), self.near_values[:, :, low:]], dim=2)
        return keys, values, torch.cat([head, tail], dim=1)

    def cut(self) -> None:
        """Drop what no later query sees."""
        if self.near_keys.shape[2] > self.first + self.last:
            self.near_keys, self.near_values, self.places = self.picked(
                self.near_keys.shape[2] - self.last
            )

    def _rows(self, change: Any) -> None:
        for name in ("keys", "values", "near_keys", "near_values", "places", "start"):
            if getattr(self, name, None) is not None:
                setattr(self, name, change(getattr(self, name)))

    def reorder_cache(self, beam_idx: Tensor) -> None:
        """Rows in the order of beams."""
        self._rows(lambda one: one.index_select(0, beam_idx.to(one.device)))

    def batch_repeat_interleave(self, repeats: int) -> None:
        """Every row so many times."""
        self._rows(lambda one: one.repeat_interleave(repeats, dim=0))

    def batch_select_indices(self, indices: Tensor) -> None:
        """Some rows only."""
        self._rows(lambda one: one[indices])

    def reset(self) -> None:
        """Forget everything."""
        super().reset()
        self.length, self.start = 0, None


def attend_split(
    module: Any, query: Tensor, key: Any, value: Any, attention_mask: Any, **kwargs: Any
) -> tuple[Tensor, None]:
    """Scaled dot products of full heads as they are, of restricted ones with what they keep."""
    window = module.config.window
    near = window["layers"].get(str(module.layer_idx), [])
    sdpa = ALL_ATTENTION_FUNCTIONS["sdpa"]
    if not near:
        output: tuple[Tensor, None] = sdpa(module, query, key, value, attention_mask, **kwargs)
        return output
    if not isinstance(key, Tensor):  # perhaps another folder's `Split`
        layer, full = key.layer, (key.full, value.full)
    else:  # no cache: everything is there, and goes through the same
        layer = WindowLayer(near, window["first"], window["last"])
        layer.update(key, value)
        full = (layer.keys, layer.values)
    if layer.start is None:
        layer.start = _start(attention_mask, query)
    shared = query.shape[1] // (len(layer.full) + len(layer.near))
    made = query.new_empty(*query.shape[:3], full[1].shape[-1])
    if layer.full:
        rows = _heads(layer.full, shared)
        given = sdpa(module, query[:, rows], *full, attention_mask, **kwargs)[0]
        made[:, rows] = given.transpose(1, 2)
    rows = _heads(layer.near, shared)
    made[:, rows] = _near(module, sdpa, query[:, rows], layer, attention_mask, kwargs)
    layer.cut()
    return made.transpose(1, 2).contiguous(), None


def _heads(groups: list[int], shared: int) -> list[int]:
    return [group * shared + place for group in groups for place in range(shared)]


def _start(mask: Any, query: Tensor) -> Tensor:
    """Where the text of each row begins: padding stands before it."""
    if mask is None:
        return torch.zeros(len(query), dtype=torch.long, device=query.device)
    seen = mask if mask.dtype == torch.bool else mask > torch.finfo(mask.dtype).min / 2
    return seen[:, 0, -1].long().argmax(-1).expand(len(query))


def _near(
    module: Any, sdpa: Any, query: Tensor, layer: WindowLayer, mask: Any, kwargs: Any
) -> Tensor:
    """What restricted heads give, `[row, head, query, dim]`: a part of a long text at a time."""
    count, parts, assert_start = query.shape[2], [], layer.start
    assert assert_start is not None
    begin = layer.length - count
    step = max(layer.last, _CHUNK)
    how = {**kwargs, "is_causal": False}
    for low in range(0, count, step):
        some = query[:, :, low : low + step]
        at = torch.arange(begin + low, begin + low + some.shape[2], device=query.device)
        # Kept keys lie before the new ones, whose last is the last of all.
        kept = layer.near_keys.shape[2]
        back = kept - count + low - layer.last
        keys, values, places = layer.picked(max(back, 0))
        stop = keys.shape[2] - max(count - low - step, 0)  # none of later queries
        keys, values, places = keys[:, :, :stop], values[:, :, :stop], places[:, None, :stop]
        start = assert_start[:, None, None]
        seen = (places >= start) & (places <= at[:, None])
        seen = seen & ((places - start < layer.first) | (at[:, None] - places < layer.last))
        if mask is not None:
            rows = mask[:, 0, low : low + step]
            rows = rows if rows.dtype == torch.bool else rows > torch.finfo(rows.dtype).min / 2
            wide = places.clamp_min(0).expand(-1, rows.shape[1], -1)
            seen = seen & rows.expand(len(wide), -1, -1).gather(2, wide)
        seen = seen | ~seen.any(-1, keepdim=True)  # a row of padding sees anything, and is not read
        parts.append(sdpa(module, some, keys, values, seen[:, None], **how)[0].transpose(1, 2))
    return torch.cat(parts, dim=2)


# --- Models that attend so ----------------------------------------------------------------------

AttentionInterface.register(NAME, attend_split)
AttentionMaskInterface.register(NAME, sdpa_mask)


def attach(model: Any) -> None:
    """Let a model attend as `config.window` says, and make its caches so."""
    model.config._attn_implementation = NAME
    model.base_model.register_forward_pre_hook(_fit_cache, with_kwargs=True)


def _fit_cache(module: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """Before a forward: an empty cache gets layers that keep what restricted heads see."""
    config, past = module.config, kwargs.get("past_key_values")
    way = config._attn_implementation.removeprefix("headcount-")
    if way != NAME and way in ("eager", *ALL_ATTENTION_FUNCTIONS.valid_keys()):
        raise ValueError(
            f"This model's heads see windows by '{NAME}', and it was set to attend by "
            f"'{way}', which knows of none; set it back, or read the whole "
            "model."
        )
    wanted = kwargs.get("use_cache")
    if past is None and (config.use_cache if wanted is None else wanted):
        past = DynamicCache(config=config)
    if isinstance(past, DynamicCache) and past.get_seq_length() == 0:
        window = config.window
        layers = {int(layer): near for layer, near in window["layers"].items() if near}
        while len(past.layers) <= max(layers, default=-1):
            past.layers.append(DynamicLayer())
        for layer, near in layers.items():
            if not isinstance(past.layers[layer], WindowLayer):
                past.layers[layer] = WindowLayer(near, window["first"], window["last"])
    return args, {**kwargs, "past_key_values": past}


@cache
def windowed(whole: Any) -> Any:
    """A class of transformers whose models attend so."""

    def build(self: Any, config: Any, *args: Any, **kwargs: Any) -> None:
        whole.__init__(self, config, *args, **kwargs)
        attach(self)

    return type(whole.__name__, (whole,), {"__init__": build, "__module__": __name__})


def __getattr__(name: str) -> Any:
    """`LlamaForCausalLM` and any other model of transformers, with windows."""
    whole = None if name.startswith("_") else getattr(transformers, name, None)
    if not (isinstance(whole, type) and issubclass(whole, transformers.PreTrainedModel)):
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    return windowed(whole)
