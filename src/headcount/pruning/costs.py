"""What a model costs whatever the machine: parameters, operations of a forward, bytes of its cache.

Two operations a multiplication, matrix products only; norms, softmax and activations do not
count. They are counted where they happen, from the shapes that each matrix sees in one forward.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from headcount.models.anatomy import sites_of
from headcount.models.quiet import quiet
from headcount.models.rest import at_rest
from headcount.pruning.parts import PARTS, Part, Parts, parts_of
from headcount.pruning.trial_inputs import trial_inputs
from headcount.subject import Subject

__all__ = ["Costs", "costs_of"]


@dataclass(frozen=True)
class Costs:
    """The costs of one model for so many rows of so many tokens."""

    parameters: int
    #: Of them, those of the attention's projections.
    attention_parameters: int
    #: Operations of one forward, by part: projections, maps, feed-forward, ends.
    parts: dict[Part, float]
    #: Bytes that a decoder keeps for each token it has read or said; 0 for an encoder.
    kv_bytes: int
    #: Bytes that the decoder of an encoder-decoder keeps for each source token.
    source_kv_bytes: int
    tokens: int
    batch: int

    @property
    def flops(self) -> float:
        """Operations of one forward."""
        return sum(self.parts.values())

    def to_json(self) -> dict[str, Any]:
        """Everything as plain numbers."""
        return {**vars(self), "parts": dict(self.parts), "flops": self.flops}


def costs_of(subject: Subject, tokens: int = 128, batch: int = 1) -> Costs:
    """Count what a model costs, whole or pruned; one forward of one row is run.

    >>> from transformers import BertConfig, BertModel
    >>> config = BertConfig(hidden_size=16, num_hidden_layers=1, num_attention_heads=4,
    ...                     intermediate_size=32, vocab_size=32)
    >>> costs = costs_of(Subject(BertModel(config)), tokens=10)
    >>> costs.attention_parameters, costs.parts["projections"], costs.parts["maps"]
    (1088, 20480.0, 6400.0)
    """
    parts = parts_of(subject)
    inputs = trial_inputs(subject, tokens, 1)
    counted: dict[Part, float] = dict.fromkeys(PARTS, 0.0)
    with at_rest(subject.model), torch.no_grad(), quiet(), _counting(parts, counted):
        subject.model(**inputs)
    own, source = _cache(subject)
    return Costs(
        parameters=sum(weight.numel() for weight in subject.model.parameters()),
        attention_parameters=_attention(parts),
        parts={part: batch * amount for part, amount in counted.items()},
        kv_bytes=own,
        source_kv_bytes=source,
        tokens=tokens,
        batch=batch,
    )


@contextmanager
def _counting(parts: Parts, counted: dict[Part, float]) -> Iterator[None]:
    """Within the block, every product of one row of a batch is added to its part."""
    keys: dict[nn.Module, int] = {}

    def product(module: nn.Module, args: tuple[Any, ...], output: Tensor) -> None:
        counted[parts.matrices[module]] += _operations(module, output)
        rows = output.numel() // output.shape[-1]
        if module in parts.keys:
            keys[parts.keys[module]] = rows
        if module in parts.output:
            counted["maps"] += _maps(parts, parts.output[module], rows, keys)

    with ExitStack() as stack:
        for module in parts.matrices:
            stack.callback(module.register_forward_hook(product).remove)
        yield


def _operations(module: nn.Module, output: Tensor) -> float:
    """Two for every weight that an output number is made of."""
    weight: Any = module.weight
    if weight.dim() > 2:  # a convolution: [out, in, ...]
        return 2.0 * output.numel() * weight[0].numel()
    return 2.0 * output.numel() / output.shape[-1] * weight.numel()


def _maps(parts: Parts, module: nn.Module, queries: int, keys: dict[nn.Module, int]) -> float:
    """Queries times keys, and the map times the values; a causal map counts whole."""
    site = parts.attention[module]
    return 4.0 * queries * keys.get(module, queries) * site.heads * site.head_dim


def _attention(parts: Parts) -> int:
    weights = {
        weight
        for module, part in parts.matrices.items()
        if part == "projections"
        for weight in module.parameters(recurse=False)
    }
    return sum(weight.numel() for weight in weights)


def _cache(subject: Subject) -> tuple[int, int]:
    """Keys and values of one token in all layers that keep them, in bytes."""
    size = subject.dtype.itemsize
    kept = {"dec": 0, "cross": 0}
    for site in sites_of(subject.model):
        if site.stack in kept:
            kept[site.stack] += 2 * site.kv_heads * site.head_dim * size
    return kept["dec"], kept["cross"]
