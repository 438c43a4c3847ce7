"""`head_mask` of transformers 4, which transformers 5 took away: scales of heads for a block."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from headcount.errors import UsageError
from headcount.models.anatomy import sites_of
from headcount.models.head_numbers import heads_left
from headcount.models.probe import core_of
from headcount.models.site import Site
from headcount.subject import Subject
from headcount.wiring.valves import valve

__all__ = ["head_mask"]

#: A tensor, anything that makes one, or one by layer; None leaves all heads alone.
Mask = Tensor | Sequence[Any] | None


@contextmanager
def head_mask(model: Any, mask: Mask | Mapping[str, Mask]) -> Iterator[None]:
    """Within the block heads are multiplied as `head_mask=` did in transformers 4.

    `mask` is `[head]`, for all layers alike, or `[layer, head]`: 1 leaves a head, 0 shuts it, and
    None, also for one layer of a list, leaves all. For an encoder-decoder it is one by stack: `enc`
    was called head_mask, `dec` decoder_head_mask and `cross` cross_attn_head_mask. Gradients flow
    to it.

    >>> from transformers import BertConfig, BertModel
    >>> config = BertConfig(hidden_size=16, num_hidden_layers=1, num_attention_heads=4,
    ...                     intermediate_size=16, vocab_size=32)
    >>> model, ids = BertModel(config).eval(), torch.tensor([[1, 2, 3]])
    >>> with head_mask(model, torch.tensor([1.0, 1.0, 0.0, 1.0])):
    ...     shut = model(ids).last_hidden_state
    >>> torch.equal(shut, model(ids).last_hidden_state)
    False
    """
    subject = model if isinstance(model, Subject) else Subject(model)
    rows = {stack: _rows(subject, stack, one) for stack, one in _by_stack(subject, mask).items()}
    scales = [_at(site, rows.get(site.stack)) for site in subject.anatomy.sites]
    with valve(subject, torch.cat([one.to(subject.device) for one in scales])):
        yield


def _by_stack(subject: Subject, mask: Mask | Mapping[str, Mask]) -> dict[str, Mask]:
    """The masks that are there, by stack."""
    stacks = subject.anatomy.stacks
    if mask is None:
        return {}
    if isinstance(mask, Mapping):
        for stack in mask.keys() - set(stacks):
            raise UsageError(f"{subject.name} has no stack '{stack}'; it has {', '.join(stacks)}.")
        return {stack: one for stack, one in mask.items() if one is not None}
    if len(stacks) > 1:
        raise UsageError(
            f"{subject.name} has the stacks {', '.join(stacks)}; give a head mask for each that is "
            f"meant, e.g. head_mask(model, {{'{stacks[0]}': mask}})."
        )
    return {stacks[0]: mask}


def _rows(subject: Subject, stack: str, mask: Any) -> list[Tensor | None]:
    """A row for every layer, those included that have no head left."""
    sites = [site for site in sites_of(subject.model) if site.stack == stack]
    layers, born = 1 + max(site.layer for site in sites), _born(subject, stack)
    rows, shape = _read(mask, layers)
    more = heads_left(core_of(subject.model).config) is not None  # the last ones may be gone
    right = [row is None or _fits(row, born, more) for row in rows]
    if len(rows) != layers or not all(right):
        raise UsageError(
            f"A head mask is [head] or [layer, head], here {layers} layers of {born} heads, "
            f"not {shape}."
        )
    return rows


def _fits(row: Tensor, heads: int, more: bool) -> bool:
    return row.dim() == 1 and (len(row) == heads or (more and len(row) > heads))


def _read(mask: Any, layers: int) -> tuple[list[Tensor | None], list[int]]:
    """The rows of a mask, and its shape for whoever must tell that it is wrong."""
    if isinstance(mask, list | tuple) and any(one is None for one in mask):
        return [None if one is None else torch.as_tensor(one).squeeze() for one in mask], [
            len(mask)
        ]
    if isinstance(mask, list | tuple) and all(torch.is_tensor(one) for one in mask):
        mask = torch.stack([one.squeeze() for one in mask])
    found = torch.as_tensor(mask)
    if found.dim() == 5 and found.numel() == found.shape[0] * found.shape[2]:
        found = found.flatten(1)  # [layer, 1, head, 1, 1], as the models' own code had it
    return list(found) if found.dim() == 2 else [found] * layers, list(found.shape)


def _born(subject: Subject, stack: str) -> int:
    """How many heads a layer was born with, as far as those that are left tell."""
    return 1 + max(head.index for head in subject.heads if head.stack == stack)


def _at(site: Site, rows: list[Tensor | None] | None) -> Tensor:
    """The scales of one site, by the numbers its heads were born with."""
    row = None if rows is None else rows[site.layer]
    if row is None:
        return torch.ones(site.heads)
    return row[list(site.indices)].to(torch.get_default_dtype())
