"""`head_mask` of transformers 4, which transformers 5 took away: scales of heads for a block."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from headcount.errors import UsageError
from headcount.models.site import Site
from headcount.subject import Subject
from headcount.wiring.valves import valve

__all__ = ["head_mask"]


@contextmanager
def head_mask(model: Any, mask: Tensor | Mapping[str, Tensor]) -> Iterator[None]:
    """Within the block heads are multiplied as `head_mask=` did in transformers 4.

    `mask` is `[head]`, for all layers alike, or `[layer, head]`: 1 leaves a head, 0 shuts it. For
    an encoder-decoder it is one by stack: `enc` was called head_mask, `dec` decoder_head_mask and
    `cross` cross_attn_head_mask. Gradients flow to it.

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
    masks = _by_stack(subject, mask)
    scales = torch.cat(
        [_at(site, masks.get(site.stack), subject) for site in subject.anatomy.sites]
    )
    with valve(subject, scales):
        yield


def _by_stack(subject: Subject, mask: Tensor | Mapping[str, Tensor]) -> dict[str, Tensor]:
    stacks = subject.anatomy.stacks
    if isinstance(mask, Mapping):
        masks = {str(stack): torch.as_tensor(one) for stack, one in mask.items()}
        for stack in masks.keys() - set(stacks):
            raise UsageError(f"{subject.name} has no stack '{stack}'; it has {', '.join(stacks)}.")
        return masks
    if len(stacks) > 1:
        raise UsageError(
            f"{subject.name} has the stacks {', '.join(stacks)}; give a head mask for each that is "
            f"meant, e.g. head_mask(model, {{'{stacks[0]}': mask}})."
        )
    return {stacks[0]: torch.as_tensor(mask)}


def _at(site: Site, mask: Tensor | None, subject: Subject) -> Tensor:
    """The scales of one site, by the numbers its heads were born with."""
    if mask is None:
        return torch.ones(site.heads, device=subject.device)
    layers = 1 + max(s.layer for s in subject.anatomy.sites if s.stack == site.stack)
    row = mask[site.layer] if mask.dim() == 2 and len(mask) >= layers else mask
    if row.dim() != 1 or len(row) <= max(site.indices):
        raise UsageError(
            f"A head mask is [head] or [layer, head], here {layers} layers of at least "
            f"{1 + max(site.indices)} heads, not {list(mask.shape)}."
        )
    return row[list(site.indices)].to(torch.get_default_dtype())
