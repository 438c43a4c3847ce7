"""Kovaleva's disabled head again, slowly: its map is 1/L over the keys that a query sees.

Kovaleva et al. (EMNLP 2019, section 4.5) put the constant in the place of the probabilities, before
dropout; here each family's own attention runs with such maps, written cell by cell.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from surgery import answer
from tiny import INTERFACE, tiny_inputs
from torch import Tensor, nn

from headcount.models.subject import Subject
from headcount.models.switch import register, switched
from headcount.records.heads import Head
from headcount.rooms.standins.standins import uniform
from headcount.wiring.valves import ablated

FAMILIES = ["bert", "gpt2", "llama", "gemma3", "marian", "t5", "modernbert"]


@contextmanager
def by_hand(subject: Subject, head: Head) -> Iterator[None]:
    """Attention as loops over rows, heads, queries and keys, with one head's map constant."""
    site = subject.anatomy.site(head.stack, head.layer)
    disabled = subject.model.get_submodule(site.module)

    def attend(
        module: nn.Module, query: Tensor, key: Tensor, value: Tensor, mask: Any, **kwargs: Any
    ) -> tuple[Tensor, Tensor]:
        groups = query.shape[1] // key.shape[1]
        keys, values = (x.repeat_interleave(groups, dim=1) for x in (key, value))
        scores = query @ keys.transpose(2, 3) * kwargs.get("scaling", 1.0)
        if kwargs.get("position_bias") is not None:
            scores = scores + kwargs["position_bias"]
        if mask is not None:
            scores = scores + mask
        maps = scores.softmax(dim=-1)
        if module is disabled:
            constant(maps, head.index, mask)
        return (maps @ values).transpose(1, 2).contiguous(), maps

    def constant(maps: Tensor, index: int, mask: Tensor | None) -> None:
        rows, _, queries, keys = maps.shape
        for row in range(rows):
            for at in range(queries):
                seen = [k for k in range(keys) if mask is None or visible(mask, row, at, k)]
                for k in range(keys):
                    maps[row, index, at, k] = 1 / len(seen) if k in seen else 0.0

    def visible(mask: Tensor, row: int, at: int, k: int) -> bool:
        return bool(mask[min(row, len(mask) - 1), 0, min(at, mask.shape[2] - 1), k] > -1e30)

    register("kovaleva", attend, mask_like="eager")
    with switched(subject.model, lambda _: "kovaleva"):
        yield


@pytest.mark.parametrize("family", FAMILIES)
def test_uniform_heads_equal_constant_maps(family: str) -> None:
    subject = Subject(INTERFACE[family]())
    inputs = tiny_inputs(subject.model, batch=2, pad=2)
    for head in subject.heads[1::7]:
        with torch.no_grad(), by_hand(subject, head):
            slow = answer(subject.model(**inputs))
        for implementation in ("sdpa", "eager"):
            subject.model.set_attn_implementation(implementation)
            with torch.no_grad(), ablated(subject, [head], uniform):
                fast = answer(subject.model(**inputs))
            torch.testing.assert_close(fast, slow, atol=3e-5, rtol=1e-4)


def test_one_over_the_length_and_nothing_on_padding() -> None:
    """The head's output is the mean of its values over real tokens, at every query alike."""
    subject = Subject(INTERFACE["bert"]())
    inputs = tiny_inputs(subject.model, batch=2, pad=3)
    attention = subject.model.get_submodule("encoder.layer.0.attention.self")
    seen: dict[str, Tensor] = {}
    hooks = [
        attention.value.register_forward_hook(lambda *_: seen.update(value=_[2])),
        attention.register_forward_hook(lambda *_: seen.update(context=_[2][0])),
    ]
    with torch.no_grad(), ablated(subject, "enc.0.2", uniform):
        subject.model(**inputs)
    for hook in hooks:
        hook.remove()
    value, context = (seen[name][1, :, 16:24] for name in ("value", "context"))
    length = int(inputs["attention_mask"][1].sum())
    mean = sum(value[place] for place in range(length)) / length
    torch.testing.assert_close(context, mean.expand(7, -1))
