"""What is read from an attention map: the quantities of its rows, what a tally needs of them
(`Needs`), and what a tap shows of one site for one batch (`Sighting`).

Entropy, distance and the mass on separators are Clark et al.'s (BlackBoxNLP 2019, section 3).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from headcount.errors import ModelError
from headcount.models import Site, Subject
from headcount.text import Batch, Side, bare_side

# --- What tallies need of an attention map -------------------------------------------------------


@dataclass(frozen=True)
class Needs:
    """Row quantities of a map `[batch, head, query, key]`; a union serves several tallies.

    Only `maps` keeps the map itself; everything else is one number a row, so that a fused
    kernel can serve it without a map and without a change in any tally.

    `tops` is for the largest weight of each row, once for every set of key classes that
    is left out (`frozenset({"separator"})`); `masses` for the mass on a class; `offsets` for
    the weight at query + offset; `smoothed` for the entropy after Clark's smoothing.

    >>> (Needs(entropy=True) | Needs(offsets=frozenset({-1}))).offsets
    frozenset({-1})
    """

    maps: bool = False
    entropy: bool = False
    smoothed: float | None = None
    tops: frozenset[frozenset[str]] = frozenset()
    masses: frozenset[str] = frozenset()
    offsets: frozenset[int] = frozenset()

    def __or__(self, other: Needs) -> Needs:
        if None not in (self.smoothed, other.smoothed) and self.smoothed != other.smoothed:
            raise ValueError("two tallies ask for entropies of different smoothing")
        return Needs(
            maps=self.maps or other.maps,
            entropy=self.entropy or other.entropy,
            smoothed=other.smoothed if self.smoothed is None else self.smoothed,
            tops=self.tops | other.tops,
            masses=self.masses | other.masses,
            offsets=self.offsets | other.offsets,
        )


# --- Row quantities of an attention map ---------------------------------------------------------
# Everything here is a plain function of the map, so that the definitions can be read and
# tested by themselves, and replaced by a fused kernel later.


def entropy(maps: Tensor) -> Tensor:
    """Entropy of each row in nats, `[batch, head, query]`.

    >>> entropy(torch.tensor([[0.5, 0.5], [1.0, 0.0]]))
    tensor([0.6931, -0.0000])
    """
    # p log p with the logarithm of the smallest number at 0, in one spare map: torch.special.entr
    # is exact there too, but several times slower on a CPU.
    spare = maps.clamp_min(torch.finfo(maps.dtype).tiny)
    return spare.log_().mul_(maps).sum(-1).neg_()


def smoothed_entropy(maps: Tensor, amount: float, real: Tensor) -> Tensor:
    """Entropy of (1-s) a + s/n over the n real keys, as Clark's program has it (s = 0.0001)."""
    share = amount / real.sum(-1, dtype=maps.dtype)[:, None, None, None]
    mixed = maps * (1 - amount) + share * real[:, None, None, :]
    return entropy(mixed)


def top(maps: Tensor, allowed: Tensor) -> tuple[Tensor, Tensor]:
    """Weight and key of each row's largest weight among the allowed keys `[batch, key]`."""
    weight, key = (maps * allowed[:, None, None, :].to(maps.dtype)).max(dim=-1)
    return weight, key


def class_masses(maps: Tensor, classes: Tensor) -> Tensor:
    """Mass on each class of keys, one matrix product: `[batch, head, query, class]`.

    `classes` is `[batch, class, key]`, 1 where the key belongs to the class.
    """
    batch, heads, queries, keys = maps.shape
    flat = maps.reshape(batch, heads * queries, keys)
    return torch.bmm(flat, classes.transpose(1, 2).to(maps.dtype)).view(
        batch, heads, queries, classes.shape[1]
    )


def at_offset(maps: Tensor, offset: int) -> Tensor:
    """Weight on the key at query + offset, `[batch, head, query]`; 0 where there is no such key.

    >>> at_offset(torch.eye(3)[None, None], 0)
    tensor([[[1., 1., 1.]]])
    """
    queries = maps.shape[-2]
    diagonal = maps.diagonal(offset, dim1=-2, dim2=-1)
    before = max(0, -offset)
    after = queries - before - diagonal.shape[-1]
    return torch.nn.functional.pad(diagonal, (before, max(0, after)))[..., :queries]


def visible_keys(mask: Tensor | None, queries: int, keys: Tensor, causal: bool) -> Tensor:
    """How many keys each query may attend to, `[batch, query]`.

    Read from the attention mask where there is one (sliding windows differ by layer), else
    from the real keys `[batch, key]` and causality.
    """
    if mask is not None and mask.dim() == 4:
        seen = unmasked(mask) & keys[:, None, None, :]
        return seen.sum(-1)[:, 0].expand(keys.shape[0], queries)
    if causal:
        return keys.cumsum(-1)[:, :queries]
    return keys.sum(-1, keepdim=True).expand(-1, queries)


def unmasked(mask: Tensor) -> Tensor:
    """True where a mask, itself true and false or added to the scores, lets a query see a key."""
    return mask if mask.dtype == torch.bool else mask > torch.finfo(mask.dtype).min / 2


def uniform_entropy(visible: Tensor) -> Tensor:
    """What uniform attention over the visible keys would give: ln of their number."""
    return visible.clamp_min(1).to(torch.float64).log()


def of_class(side: Side, name: str) -> Tensor:
    """True at the real tokens of a class, `[batch, token]`.

    Classes are first (the first real token, whatever it is), separator, special, punctuation and
    stops, which are exactly "." and ",".
    """
    if name == "first":
        return side.real & (side.real.cumsum(-1) == 1)
    members: Tensor = getattr(side, name)
    return members & side.real


# --- What a tap shows of one site for one batch -------------------------------------------------


@dataclass(frozen=True)
class Sighting:
    """Quantities of one site's map `[batch, head, query, key]`, as far as they were asked for.

    `queries` and `keys` are the text sides the rows and columns stand for. Rows of padding
    hold no meaning: weigh by `queries.real`.
    """

    site: Site
    batch: Batch
    queries: Side
    keys: Side
    visible: Tensor
    maps: Tensor | None = None
    entropy: Tensor | None = None
    smoothed_entropy: Tensor | None = None
    tops: dict[frozenset[str], tuple[Tensor, Tensor]] = field(default_factory=dict)
    masses: dict[str, Tensor] = field(default_factory=dict)
    offsets: dict[int, Tensor] = field(default_factory=dict)


def look(site: Site, maps: Tensor, mask: Tensor | None, batch: Batch, needs: Needs) -> Sighting:
    """Reduce a map to what is needed; statistics of half-precision maps are taken in float32."""
    maps = maps.detach()
    exact = maps if maps.dtype in (torch.float32, torch.float64) else maps.float()
    queries = _side(batch.query(site.stack), exact, -2)
    keys = _side(batch.key(site.stack), exact, -1)
    smoothed = None
    if needs.smoothed is not None:
        smoothed = smoothed_entropy(exact, needs.smoothed, keys.real)
    tops = {}
    for left_out in needs.tops:
        allowed = keys.real
        for name in left_out:
            allowed = allowed & ~of_class(keys, name)
        tops[left_out] = top(exact, allowed)
    masses: dict[str, Tensor] = {}
    if needs.masses:
        names = sorted(needs.masses)
        classes = torch.stack([of_class(keys, name) for name in names], dim=1)
        masses = dict(zip(names, class_masses(exact, classes).unbind(-1), strict=True))
    return Sighting(
        site=site,
        batch=batch,
        queries=queries,
        keys=keys,
        visible=visible_keys(mask, exact.shape[-2], keys.real, site.causal),
        maps=exact if needs.maps else None,
        entropy=entropy(exact) if needs.entropy else None,
        smoothed_entropy=smoothed,
        tops=tops,
        masses=masses,
        offsets={offset: at_offset(exact, offset) for offset in sorted(needs.offsets)},
    )


def _side(side: Side | None, maps: Tensor, axis: int) -> Side:
    """A side on the device of the map: a model's layers may be spread over several.

    Where only the model knows its tokens (image patches, audio frames), the map tells how many.
    """
    if side is None:
        real = torch.ones(maps.shape[0], maps.shape[axis], dtype=torch.bool, device=maps.device)
        return bare_side(real.long(), real)
    return side if side.real.device == maps.device else side.to(maps.device)


# --- Token ids that a model can embed -----------------------------------------------------------


def check_ids(subject: Subject, inputs: Mapping[str, Tensor]) -> None:
    """Raise when the tokenizer made an id that the model has no embedding for."""
    for name in ("input_ids", "decoder_input_ids"):
        ids = inputs.get(name)
        rows = known_ids(subject, name)
        if ids is not None and rows is not None and ids.numel() and int(ids.max()) >= rows:
            raise ModelError(
                f"{name} holds the token id {int(ids.max())} and {subject.name} embeds {rows}, "
                "from 0: this is not the tokenizer that the model was trained with."
            )


def known_ids(subject: Subject, name: str) -> int | None:
    """How many tokens the side's embedding has; None where that is not known."""
    model: Any = subject.inner
    if name == "decoder_input_ids":
        model = model.get_decoder() if hasattr(model, "get_decoder") else None
    try:
        return getattr(model.get_input_embeddings(), "num_embeddings", None)
    except (AttributeError, NotImplementedError):
        return None
