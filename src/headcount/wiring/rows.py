"""Row statistics of attention, by the cheapest path that serves them.

`map`: the family's own eager function gives its map, which is reduced; in tiles of queries where
the map would be large. `scores`: on a CPU the map of a short text is made from its scores, which
spares the logarithms of entropies. `tiled`: the same a tile of queries at a time; elsewhere the
model attends as it comes (sdpa), and the scores are computed beside it. `fused`: the same in one
kernel on a GPU, which writes no scores at all (`rooms/kernel/fused.py`). Nothing larger than a tile
exists, unless maps are asked for or small. Families differ in what they do to scores before the
softmax, so a path without the family's own function is held against it on a few rows of each layer
before it is trusted (`agrees`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_map

from headcount.models import base_function, out_of_memory
from headcount.wiring.sighting import TILE, Asked, in_float32, numpy_is_faster, of_map, tile_rows

#: What each path is, for who asks how attention was read.
PATHS = {
    "map": "the family's own map of one layer at a time, reduced to a number a row",
    "map in tiles": "the family's own map, a tile of queries at a time",
    "scores": "a layer's map made from its scores, a text at a time",
    "tiled": "scores, a tile of queries at a time",
    "fused": "one kernel beside the model's own sdpa; no map and no scores in memory",
    "recorded": "the same, replayed as a CUDA graph where batches of one shape come again",
}

#: A score that leaves a key out; finite, since infinity times a weight of 0 is not a number.
LOWEST = -1e30

#: Tiles are halved down to this where memory runs out.
_SMALLEST = 2**16

#: Cells of the maps that are made at once on a CPU: those of a text of 128 tokens and 16 heads.
_AT_ONCE = 2**18

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

    def texts(self, some: slice) -> Scores:
        """Those of some texts of the batch."""
        names = ("query", "key", "mask", "bias")
        return replace(self, **{name: _of_texts(getattr(self, name), some) for name in names})

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
        seen = min(stop, self.shape[3]) if self.causal else self.shape[3]
        places = torch.arange(start, stop, device=self.query.device)[None]
        return self._finished(self._product(self.query[:, :, start:stop], seen), places, start)

    def _product(self, query: Tensor, seen: int) -> Tensor:
        """Query times key, scaled in float32; key heads that serve several heads are not copied."""
        batch, heads, rows, dim = query.shape
        shared = self.key.shape[1]
        flat = (query.float() * self.scaling).reshape(batch, shared, heads // shared * rows, dim)
        with torch.autocast(query.device.type, enabled=False):
            found = flat @ self.key[:, :, :seen].float().transpose(-1, -2)
        return found.view(batch, heads, rows, seen)

    def _finished(self, scores: Tensor, places: Tensor, least: int = 0) -> Tensor:
        """With bias and mask; `least` is the first place, up to which all keys are in sight."""
        for part in (self.bias, self.mask):
            if part is None:
                continue
            rows = _rows_of(part, places)[..., : scores.shape[-1]]
            if rows.dtype == torch.bool:
                scores = scores.masked_fill_(~rows, LOWEST)
            else:
                scores = (scores + rows.float()).clamp_min_(LOWEST)
        if self.causal and least < scores.shape[-1]:
            keys = torch.arange(least, scores.shape[-1], device=scores.device)
            scores[..., least:].masked_fill_((keys > places[..., None])[:, None], LOWEST)
        return scores


def _of_texts(part: Any, some: slice) -> Any:
    """A tensor of some texts of a batch; what all texts share stays as it is."""
    shared = not isinstance(part, Tensor) or part.shape[0] == 1
    return part if shared else part[some]


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


#: Head outputs `[batch, query, head, dim]`, where values were given, and quantities of rows.
Read = tuple[Tensor | None, dict[str, Any]]


def tiled(scores: Scores, asked: Asked, value: Tensor | None = None) -> Read:
    """What is asked of the rows, a tile of queries at a time; with values, the outputs too."""
    batch, heads, queries, keys = scores.shape
    if batch > 1 and scores.query.device.type == "cpu":  # tiles of many queries of one text
        texts = [
            tiled(scores.texts(slice(n, n + 1)), own, None if value is None else value[n : n + 1])
            for n, own in enumerate(asked.texts)
        ]
        outputs, found = zip(*texts, strict=True)
        return None if value is None else torch.cat(outputs), merged(found, dim=0)
    step = tile_rows(scores.query.device, batch * heads * keys)
    parts, made = [], []
    for start in range(0, queries if asked.places is None else asked.places.shape[1], step):
        if asked.places is None:
            stop = min(queries, start + step)
            places = torch.arange(start, stop, device=scores.query.device).expand(batch, -1)
            tile = scores.of_tile(start, stop)
        else:
            places = asked.places[:, start : start + step]
            tile = scores.of_rows(places)
        weights, entropies = tile.softmax(-1), None
        if asked.needs.entropy:
            entropies = _entropies(tile, weights)
        if value is not None:
            made.append(_outputs(weights, value))
        parts.append(of_map(weights, asked, places, entropies))
    return torch.cat(made, dim=1) if made else None, merged(parts, dim=2)


def attended(
    scores: Scores, value: Tensor, entropy: bool = True, room: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Head outputs, map and entropies, a few texts at a time: what they need stays in the caches.

    `room` is an earlier map that nobody needs any more: fresh memory costs as much as to fill it.
    """
    batch, heads, queries, keys = scores.shape
    weights = room
    usable = weights is not None and weights.is_inference() == torch.is_inference_mode_enabled()
    if weights is None or not usable or weights.shape != scores.shape:
        weights = scores.query.new_empty(scores.shape)
    outputs = scores.query.new_empty(batch, queries, heads, value.shape[-1])
    entropies = scores.query.new_empty(batch, heads, queries)
    shared, places = scores.key.shape[1], torch.arange(queries)[None]
    step = min(batch, max(1, _AT_ONCE // (heads * queries * keys)))
    spare = scores.query.new_empty(step * shared, heads // shared * queries, keys)
    for n in range(0, batch, step):
        some = slice(n, min(batch, n + step))
        parts = (some.stop - n) * shared
        flat = scores.query[some].reshape(parts, -1, scores.query.shape[-1])
        key = scores.key[some].reshape(parts, keys, -1)
        product = torch.baddbmm(
            spare[:parts], flat, key.mT, beta=0, alpha=scores.scaling, out=spare[:parts]
        )
        own = scores.texts(some)._finished(product.view(-1, heads, queries, keys), places)
        maps = torch.softmax(own, -1, out=weights[some])
        outputs[some] = _outputs(maps, value[some])
        if entropy:  # NumPy between two operations would put threads to sleep
            entropies[some] = _above(own.amax(-1), own.mul_(maps).sum(-1))
    if entropy:
        entropies -= weights.amax(-1).log_()
    return outputs, weights, entropies if entropy else None


def _entropies(scores: Tensor, weights: Tensor) -> Tensor:
    """The entropy of each row in nats, without the logarithm of each weight.

    For weights exp(s - z), -sum w log w is z - sum w s, and z is max s - log max w.
    """
    if numpy_is_faster(scores):
        products = np.einsum("bhqk,bhqk->bhq", weights.numpy(), scores.numpy())
        mean = torch.from_numpy(products)
    else:
        mean = torch.linalg.vecdot(weights, scores)
    return _above(scores.amax(-1), mean) - weights.amax(-1).log_()


def _above(top: Tensor, mean: Tensor) -> Tensor:
    """The largest score of a row above their mean; nothing where the row sees no key."""
    return (top - mean).masked_fill_(top < LOWEST / 2, 0)


def _outputs(weights: Tensor, value: Tensor) -> Tensor:
    """Weights times values `[batch, query, head, dim]`; value heads serve several heads."""
    batch, heads, queries, seen = weights.shape
    shared = value.shape[1]
    flat = weights.reshape(batch, shared, heads // shared * queries, seen)
    found = flat @ value[:, :, :seen]
    return found.view(batch, heads, queries, -1).transpose(1, 2)


def halve_tiles(device: torch.device) -> bool:
    """Make tiles on a device half as large from now on; False where they are small already."""
    kind = device.type if device.type in TILE else "cuda"
    if TILE[kind] <= _SMALLEST:
        return False
    for each in (kind, "kept"):
        TILE[each] //= 2
    return True


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
    step = tile_rows(call.query.device, batch * heads * call.key.shape[2])
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


def agrees(call: Call) -> bool | None:
    """Whether the family's own eager function gives the weights of these scores.

    On a few rows of the text that sees most, in float32, so that only a difference in what is
    computed shows, never one of rounding. None where these rows cannot tell: a query that sees one
    key gives it all its weight in any family.
    """
    if call.scores is None:
        return False
    queries, text = call.query.shape[2], _fullest(call.mask)
    places = torch.linspace(0, queries - 1, min(queries, _CHECKED), device=call.query.device).long()
    one = slice(text, text + 1)
    exact = lambda part: _of_texts(part.float() if _is_added(part) else part, one)  # noqa: E731
    query, key, value = (
        _of_texts(part, one).float() for part in (call.query, call.key, call.value)
    )
    alone = Call(
        call.module,
        query,
        key,
        value,
        exact(call.mask),
        call.arguments
        | {name: exact(call.arguments[name]) for name in _ADDED & set(call.arguments)},
    )
    assert alone.scores is not None
    try:
        with torch.no_grad(), torch.autocast(call.query.device.type, enabled=False):
            found = alone.scores.of_rows(places[None])
            _, theirs = alone.eager(places)
    except (LookupError, RuntimeError, TypeError, ValueError, AttributeError) as error:
        if out_of_memory(error):  # says nothing of the family
            raise
        return False
    if theirs is None or theirs.shape != found.shape:
        return False
    seen = (found > LOWEST / 2).sum(-1, keepdim=True)
    if not bool((seen > 1).any()):
        return None
    # padding on the left sees nothing
    difference = ((found.softmax(-1) - theirs.float()) * (seen > 0)).abs().amax()
    return bool(difference <= _TOLERANCE) or bool(difference.isnan())  # NaN is found later


def _fullest(mask: Any) -> int:
    """The text of a batch whose queries see most keys."""
    if not isinstance(mask, Tensor) or mask.shape[0] == 1:
        return 0
    open_cells = mask > torch.finfo(mask.dtype).min / 2 if _is_added(mask) else mask != 0
    return int(open_cells.flatten(1).sum(1).argmax())


#: Arguments that are added to scores.
_ADDED = {"position_bias"}


def _is_added(part: Any) -> bool:
    """Whether a mask or bias is added to scores."""
    return isinstance(part, Tensor) and part.is_floating_point()
