"""Attention under a rule: the family's own eager function computes, one step carries relevance."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from headcount.errors import UnsupportedModel
from headcount.lrp.operations import carries
from headcount.lrp.rule import Attending
from headcount.lrp.step import step
from headcount.models.switch import base_function, register, switched
from headcount.subject import Subject
from headcount.wiring.seam import Attended, Turns, shown

if TYPE_CHECKING:
    from headcount.lrp.propagate import Tracing
    from headcount.lrp.tracer import Tracer

__all__ = ["attended_by"]

_NAME = "headcount-relevance"

#: The open blocks, by the id of each attention module.
_OPEN: dict[int, tuple[Tracing, Turns]] = {}


@contextmanager
def attended_by(subject: Subject, tracing: Tracing) -> Iterator[None]:
    """Within the block every attention of the model is a step of the tracing."""
    turns = Turns(subject.model, subject.anatomy)
    modules = [subject.model.get_submodule(site.module) for site in subject.anatomy.sites]
    register(_NAME, attend, mask_like="eager")
    with turns.counted(subject.model), switched(subject.model, lambda _: _NAME):
        try:
            _OPEN.update({id(module): (tracing, turns) for module in modules})
            yield
        finally:
            for module in modules:
                _OPEN.pop(id(module), None)


def attend(
    module: nn.Module, query: Tensor, key: Tensor, value: Tensor, attention_mask: Any, **kwargs: Any
) -> tuple[Tensor, Tensor]:
    """Attention as the family's eager function has it; a step where a forward is traced."""
    bare = [tensor.detach() for tensor in (query, key, value)]
    output, weights = base_function(module, "eager")(module, *bare, attention_mask, **kwargs)
    tracing, turns = _OPEN[id(module)]
    site, tracer = turns.next(module), tracing.tracer
    if tracer is None or not carries([query, key, value]):
        return output, weights
    _check(module, kwargs, tracing)
    scale = kwargs.get("scaling")
    scale = query.shape[-1] ** -0.5 if scale is None else float(scale)
    call = Attending(bare[0], bare[1], bare[2], weights, output.transpose(1, 2), scale)
    tracer.close_fans()
    counter = tracer.ledger.heads[site] = tracer.ledger.counter(output, site.heads)
    carried = [t for t in (query, key, value) if carries(t)]
    heads = step(output, [*carried, counter], _share(tracer, call, (query, key, value)))
    return shown(module, Attended(heads, weights, attention_mask, value)), weights


def _share(tracer: Tracer, call: Attending, inputs: Sequence[Tensor]) -> Any:
    wanted = [carries(tensor) for tensor in inputs]

    def share(told: Tensor) -> Sequence[Tensor | None]:
        parts = tracer.rule.attention(call, told.transpose(1, 2))
        found = [part for part, carried in zip(parts, wanted, strict=True) if carried]
        return *found, told.sum(dim=(1, 3), dtype=torch.promote_types(told.dtype, torch.float32))

    return share


def _check(module: nn.Module, kwargs: dict[str, Any], tracing: Tracing) -> None:
    """A softcap bends the scores, which only rules that leave them alone can pass over."""
    if kwargs.get("softcap") is not None and tracing.rule.name != "default":
        raise UnsupportedModel(
            f"{type(module).__name__} caps its attention scores, which the relevance rule "
            f"'{tracing.rule.name}' does not cover; use the rule 'default'."
        )
