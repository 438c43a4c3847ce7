"""Heads multiplied and removed with the calls of transformers 4."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from headcount.errors import UsageError
from headcount.models import Subject, core_of, heads_left, sites_of
from headcount.pruning import cut_heads, keeps, named_heads, prune
from headcount.wiring import valve

#: A tensor, anything that makes one, or one by layer; None leaves all heads as they are.
Mask = Tensor | Sequence[Any] | None


@contextmanager
def head_mask(model: Any, mask: Mask | Mapping[str, Mask]) -> Iterator[None]:
    """Within the block heads are multiplied as `head_mask=` did in transformers 4.

    `mask` is `[head]`, for all layers alike, or `[layer, head]`: 1 leaves a head, 0 switches it
    off, and None, also for one layer of a list, leaves all. For an encoder-decoder it is one by
    stack: `enc` was called head_mask, `dec` decoder_head_mask and `cross` cross_attn_head_mask.
    Gradients flow to it.

    >>> from transformers import BertConfig, BertModel
    >>> config = BertConfig(hidden_size=16, num_hidden_layers=1, num_attention_heads=4,
    ...                     intermediate_size=16, vocab_size=32)
    >>> model, ids = BertModel(config).eval(), torch.tensor([[1, 2, 3]])
    >>> with head_mask(model, torch.tensor([1.0, 1.0, 0.0, 1.0])):
    ...     without = model(ids).last_hidden_state
    >>> torch.equal(without, model(ids).last_hidden_state)
    False
    """
    subject = model if isinstance(model, Subject) else Subject(model)
    rows = {stack: _rows(subject, stack, one) for stack, one in _by_stack(subject, mask).items()}
    scales = []
    for site in subject.anatomy.sites:
        row = rows[site.stack][site.layer] if site.stack in rows else None
        one = torch.ones(site.heads) if row is None else row[list(site.indices)]
        scales.append(one.to(subject.device, torch.get_default_dtype()))
    with valve(subject, torch.cat(scales)):
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
    layers = 1 + max(site.layer for site in sites_of(subject.model) if site.stack == stack)
    # Heads keep the numbers they were born with; of a pruned model the last ones may be gone.
    born = 1 + max(head.index for head in subject.heads if head.stack == stack)
    pruned = heads_left(core_of(subject.model).config) is not None
    rows, shape = _read(mask, layers)
    fits = [
        row is None or (row.dim() == 1 and (len(row) == born or (pruned and len(row) > born)))
        for row in rows
    ]
    if len(rows) != layers or not all(fits):
        raise UsageError(
            f"A head mask is [head] or [layer, head], here {layers} layers of {born} heads, "
            f"not {shape}."
        )
    return rows


def _read(mask: Any, layers: int) -> tuple[list[Tensor | None], list[int]]:
    """The rows of a mask, and its shape for the message that it is wrong."""
    if isinstance(mask, list | tuple) and any(one is None for one in mask):
        rows = [None if one is None else torch.as_tensor(one).squeeze() for one in mask]
        return rows, [len(mask)]
    if isinstance(mask, list | tuple) and all(torch.is_tensor(one) for one in mask):
        mask = torch.stack([one.squeeze() for one in mask])
    found = torch.as_tensor(mask)
    if found.dim() == 5 and found.numel() == found.shape[0] * found.shape[2]:
        found = found.flatten(1)  # [layer, 1, head, 1, 1], as the models' own code had it
    return list(found) if found.dim() == 2 else [found] * layers, list(found.shape)


ByLayer = Mapping[int, Iterable[int]]


def prune_heads(model: Any, heads: ByLayer | Mapping[str, ByLayer]) -> Any:
    """Remove heads from a transformers model in place, and give it back.

    `heads` is ``{layer: [heads]}``, for an encoder-decoder ``{"enc": {layer: [heads]}}``. Numbers
    are those that heads were born with, also when some were removed before. `hc.prune` leaves
    the model as it is and gives a copy.

    >>> from transformers import BertConfig, BertModel
    >>> config = BertConfig(hidden_size=16, num_hidden_layers=2, num_attention_heads=4,
    ...                     intermediate_size=16, vocab_size=32)
    >>> model = prune_heads(BertModel(config), {0: [1, 2], 1: [0]})
    >>> [layer.attention.self.num_attention_heads for layer in model.encoder.layer]
    [2, 3]
    """
    subject = Subject(model)
    if not isinstance(heads, Mapping):
        raise UsageError(
            f"prune_heads takes layers with their heads, {{0: [1, 2]}}, not {heads!r}; hc.prune "
            "takes names."
        )
    going = list(dict.fromkeys(named_heads(heads, subject.heads)))
    prune(subject, going)  # a copy is cut and compared first: the model changes only if that holds
    cut_heads(model, keeps(subject.anatomy, going), subject.anatomy.sites)
    return model
