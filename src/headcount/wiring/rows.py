"""Row statistics of attention, by the cheapest path that serves them.

`map`: the family's own eager function gives its map, which is reduced; in tiles of queries where
the map would be large. `tiled`: the model attends as it comes (sdpa), and the scores are computed
beside it, a tile of queries at a time. `fused`: the same in one kernel on a GPU, which writes no
scores at all (`wiring/fused.py`). Nothing larger than a tile exists, unless maps are asked for.
Families differ in what they do to scores before the softmax, so a path without the family's own
function is held against it on a few rows of each layer before it is trusted (`agrees`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_map

from headcount.models import base_function
from headcount.wiring.sighting import Asked, in_float32, of_map

#: What each path is, for who asks how attention was read.
PATHS = {
    "map": "the family's own map of one layer at a time, reduced to a number a row",
    "map in tiles": "the family's own map, a tile of queries at a time",
    "tiled": "scores computed beside the model's own sdpa, a tile of queries at a time",
    "fused": "one kernel beside the model's own sdpa; no map and no scores in memory",
    "recorded": "the same, replayed as a CUDA graph where batches of one shape come again",
}

#: A score that leaves a key out; finite, since infinity times a weight of 0 is not a number.
LOWEST = -1e30

#: Cells of a tile: small enough for the caches of a CPU, large enough to keep a GPU busy.
TILE = {"cpu": 2**19, "cuda": 2**25}

#: Tiles are halved down to this where memory runs out.
_SMALLEST = 2**16

#: The rows on which a path is held against the family's own function, and the largest difference
#: between two weights that is put down to rounding.
_CHECKED, _TOLERANCE = 16, 1e-3


@dataclass(frozen=True)
class Scores:
    """What one attention call turns into a map: ``softmax(query key' scaling + bias + mask)``.

    `query` is `[batch, head, query, dim]`, `key` `[batch, key head, key, dim]`. A mask is true and
    false or added; without one, `causal` tells whether a query sees the keys up to its own place.
    """

    query: Tensor
    key: Tensor
    scaling: float
    mask: Tensor | None = None
    causal: bool = False
    bias: Tensor | None = None

    @classmethod
    def together(cls, several: Sequence[Scores]) -> Scores:
        """The scores of several layers as those of one with all their heads."""
        first = several[0]
        if len(several) == 1:
            return first
        query = torch.cat([one.query for one in several], dim=1)
        return replace(first, query=query, key=torch.cat([one.key for one in several], dim=1))

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Of the map: batch, heads, queries, keys."""
        return (*self.query.shape[:3], self.key.shape[2])

    def of_rows(self, places: Tensor) -> Tensor:
        """The scores of some queries `[batch, row]`, `[batch, head, row, key]`, in float32."""
        chosen = places[:, None, :, None].expand(-1, self.query.shape[1], -1, self.query.shape[3])
        return self._finished(self._product(self.query.gather(2, chosen), self.shape[3]), places)

    def of_tile(self, start: int, stop: int) -> Tensor:
        """The scores of the queries from `start` to `stop`; causal ones as far as they see."""
        seen = stop if self.causal else self.shape[3]
        places = torch.arange(start, stop, device=self.query.device)[None]
        return self._finished(self._product(self.query[:, :, start:stop], seen), places)

    def _product(self, query: Tensor, seen: int) -> Tensor:
        """Query times key, scaled in float32; key heads that serve several heads are not copied."""
        batch, heads, rows, dim = query.shape
        shared = self.key.shape[1]
        flat = (query.float() * self.scaling).reshape(batch, shared, heads // shared * rows, dim)
        found = flat @ self.key[:, :, :seen].float().transpose(-1, -2)
        return found.view(batch, heads, rows, seen)

    def _finished(self, scores: Tensor, places: Tensor) -> Tensor:
        for part in (self.bias, self.mask):
            if part is None:
                continue
            rows = _rows_of(part, places)[..., : scores.shape[-1]]
            if rows.dtype == torch.bool:
                scores = scores.masked_fill_(~rows, LOWEST)
            else:
                scores = (scores + rows.float()).clamp_min_(LOWEST)
        if self.causal:
            later = torch.arange(scores.shape[-1], device=scores.device) > places[..., None]
            scores = scores.masked_fill_(later[:, None], LOWEST)
        return scores


def _rows_of(part: Tensor, places: Tensor) -> Tensor:
    """The rows of a mask or bias `[1 or batch, 1 or head, 1 or query, key]` at some places."""
    if part.dim() == 2:  # of keys alone
        return part[:, None, None, :].bool()
    if part.shape[2] == 1:
        return part
    if places.shape[0] == 1:
        first, count = int(places[0, 0]), places.shape[1]
        if int(places[0, -1]) - first == count - 1:
            return part[:, :, first : first + count]
        return part[:, :, places[0]]
    part = part.expand(places.shape[0], -1, -1, -1)
    chosen = places[:, None, :, None].expand(-1, part.shape[1], -1, part.shape[3])
    return part.gather(2, chosen)


def scores_of(
    module: nn.Module, query: Tensor, key: Tensor, mask: Any, arguments: Mapping[str, Any]
) -> Scores | None:
    """The scores of an attention call; None where its arguments ask for more than that.

    Soft caps and learned sinks are left to the family's own function.
    """
    if query.dim() != 4 or key.dim() != 4 or not (mask is None or isinstance(mask, Tensor)):
        return None
    if arguments.get("softcap") is not None or arguments.get("s_aux") is not None:
        return None
    scaling = arguments.get("scaling")
    causal = arguments.get("is_causal")
    if causal is None:
        causal = getattr(module, "is_causal", True)
    return Scores(
        query.detach(),
        key.detach(),
        query.shape[-1] ** -0.5 if scaling is None else float(scaling),
        mask,
        mask is None and bool(causal) and query.shape[2] > 1,
        arguments.get("position_bias"),
    )


def tiled(scores: Scores, asked: Asked) -> dict[str, Any]:
    """What is asked of the rows, a tile of queries at a time."""
    batch, heads, queries, keys = scores.shape
    step = _step(scores.query.device, batch * heads * keys)
    parts = []
    if asked.places is None:
        for start in range(0, queries, step):
            stop = min(queries, start + step)
            places = torch.arange(start, stop, device=scores.query.device)
            parts.append(_of_tile(scores.of_tile(start, stop), asked, places.expand(batch, -1)))
    else:
        for places in asked.places.split(step, dim=1):
            parts.append(_of_tile(scores.of_rows(places), asked, places))
    return merged(parts, dim=2)


def halve_tiles(device: torch.device) -> bool:
    """Make tiles on a device half as large from now on; False where they are small already."""
    kind = device.type if device.type in TILE else "cuda"
    if TILE[kind] <= _SMALLEST:
        return False
    TILE[kind] //= 2
    return True


def _step(device: torch.device, row: int) -> int:
    """How many queries a tile has, by the cells of one."""
    return max(1, TILE.get(device.type, TILE["cuda"]) // max(1, row))


def _of_tile(scores: Tensor, asked: Asked, places: Tensor) -> dict[str, Any]:
    """The quantities of a tile of scores: those of its weights."""
    weights, entropies = scores.softmax(-1), None
    if asked.needs.entropy:
        # With the scores at hand no logarithm of each weight is needed: for weights exp(s - z),
        # -sum w log w = z - sum w s.
        z = scores.amax(-1) - weights.amax(-1).log()
        entropies = z - torch.einsum("bhqk,bhqk->bhq", weights, scores)
    return of_map(weights, asked, places, entropies)


def merged(parts: Sequence[dict[str, Any]], dim: int) -> dict[str, Any]:
    """Quantities of several batches (0), layers (1) or tiles (2) as those of one."""
    if len(parts) == 1:
        return parts[0]
    found: dict[str, Any] = tree_map(
        lambda *own: None if own[0] is None else torch.cat(own, dim=dim), *parts
    )
    return found


# --- The family's own function ------------------------------------------------------------------


@dataclass(frozen=True)
class Call:
    """One call of an attention function: its module and its arguments."""

    module: nn.Module
    query: Tensor
    key: Tensor
    value: Tensor
    mask: Any
    arguments: dict[str, Any]

    @cached_property
    def scores(self) -> Scores | None:
        """What is known of its scores."""
        return scores_of(self.module, self.query, self.key, self.mask, self.arguments)

    def eager(self, places: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Head outputs and map as the family computes them, of all queries or of some of them.

        The mask is given as eager functions take it, which is not how sdpa does.
        """
        function = base_function(self.module, "eager")
        query, arguments, mask = self.query, dict(self.arguments), self.mask
        if places is not None:
            query = query[:, :, places]
        rows = None if places is None else places[None]
        if arguments.get("position_bias") is not None and rows is not None:
            arguments["position_bias"] = _rows_of(arguments["position_bias"], rows)
        mask = self._added(mask, rows)
        output, weights = function(self.module, query, self.key, self.value, mask, **arguments)
        return output, weights

    def _added(self, mask: Any, places: Tensor | None) -> Any:
        """The mask as numbers to be added, for all queries or for some of them."""
        if mask is None and not (self.scores is not None and self.scores.causal):
            return None
        lowest = torch.finfo(self.query.dtype).min
        if mask is None:
            own = torch.arange(self.query.shape[2], device=self.query.device)
            rows = own[None] if places is None else places
            keys = torch.arange(self.key.shape[2], device=self.query.device)
            mask = (keys <= rows[0][:, None])[None, None]
        elif isinstance(mask, Tensor) and places is not None:
            mask = _rows_of(mask, places)
        elif isinstance(mask, Tensor) and mask.dim() == 2:
            mask = mask[:, None, None, :].bool()
        if isinstance(mask, Tensor) and mask.dtype == torch.bool:
            added = torch.zeros(mask.shape, dtype=self.query.dtype, device=mask.device)
            return added.masked_fill_(~mask, lowest)
        return mask


def eager_tiles(call: Call, asked: Asked) -> tuple[Tensor, dict[str, Any]]:
    """Head outputs and what is asked of the rows, by the family's own function on tiles."""
    batch, heads, queries, _ = call.query.shape
    step = _step(call.query.device, batch * heads * call.key.shape[2])
    outputs, parts = [], []
    for start in range(0, queries, step):
        places = torch.arange(start, min(queries, start + step), device=call.query.device)
        output, weights = call.eager(places)
        outputs.append(output)
        parts.append(of_map(in_float32(weights), asked, places.expand(batch, -1)))
    found = merged(parts, dim=2)
    if asked.places is not None:
        rows = asked.places[:, None].expand(-1, heads, -1)
        found = tree_map(lambda own: None if own is None else own.gather(2, rows), found)
    return torch.cat(outputs, dim=1), found


def agrees(call: Call) -> bool:
    """Whether the family's own eager function gives the weights of these scores.

    On a few rows of one text, in float32, so that only a difference in what is computed shows,
    never one of rounding.
    """
    if call.scores is None:
        return False
    queries = call.query.shape[2]
    places = torch.linspace(0, queries - 1, min(queries, _CHECKED), device=call.query.device).long()
    one = Call(
        call.module,
        call.query[:1].float(),
        call.key[:1].float(),
        call.value[:1].float(),
        _in_float32(call.mask),
        call.arguments
        | {name: _in_float32(call.arguments[name]) for name in _ADDED & set(call.arguments)},
    )
    assert one.scores is not None
    found = one.scores.of_rows(places[None])
    try:
        with torch.no_grad(), torch.autocast(call.query.device.type, enabled=False):
            _, theirs = one.eager(places)
    except torch.OutOfMemoryError:  # says nothing of the family
        raise
    except (LookupError, RuntimeError, TypeError, ValueError, AttributeError):
        return False
    if theirs is None or theirs.shape != found.shape:
        return False
    seen = (found > LOWEST / 2).any(-1, keepdim=True)  # padding on the left sees nothing
    difference = ((found.softmax(-1) - theirs.float()) * seen).abs().amax()
    return bool(difference <= _TOLERANCE) or bool(difference.isnan())  # NaN is found later


#: Arguments that are added to scores.
_ADDED = {"position_bias"}


def _in_float32(part: Any) -> Any:
    """A mask or bias of the first text, exact where it is added to scores."""
    if not isinstance(part, Tensor):
        return part
    return part[:1].float() if part.is_floating_point() else part[:1]
