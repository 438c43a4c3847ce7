"""The cheap score of kvpress (`on_the_fly_scoring` of its DuoAttentionPress), written anew.

The mean query and the mean key of each head, turned by the rotary embedding to every distance: the
area under the cumulated attention of the last token. A head that looks near has a small area.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor
from transformers.models.llama.modeling_llama import apply_rotary_pos_emb

import headcount as hc
from headcount.records import Head
from headcount.tasks import Task, forward

#: Tokens back that are looked at.
REACH = 500


def cumulated_attention(
    subject: hc.Subject, task: Task, units: Sequence[tuple[Head, ...]]
) -> list[float]:
    """The area of each key group, the mean of its heads and of all texts."""
    core: Any = subject.inner.model
    sites = [site for site in subject.anatomy.sites if site.stack == "dec"]
    worth = dict.fromkeys(subject.heads, 0.0)
    means: dict[tuple[str, str], Tensor] = {}

    def keep(key: tuple[str, str], dim: int, _: Any, __: Any, given: Tensor) -> None:
        means[key] = given.unflatten(-1, (-1, dim)).flatten(2, -2).mean(1)[0].float()

    hooks = []
    for site in sites:
        module: Any = subject.model.get_submodule(site.module)
        for name in ("q", "k"):
            source = getattr(module, f"{name}_norm", None) or getattr(module, f"{name}_proj")
            hear = partial(keep, (site.module, name), site.head_dim)
            hooks.append(source.register_forward_hook(hear))
    try:
        for batch in task.batches(subject, 1):
            with torch.no_grad():
                forward(subject, batch)
                for site in sites:
                    area = _area(core, site, means)
                    for head, one in zip(site.names, area.tolist(), strict=True):
                        worth[head] += one / len(task)
    finally:
        for hook in hooks:
            hook.remove()
    return [sum(worth[head] for head in unit) / len(unit) for unit in units]


def _area(core: Any, site: Any, means: dict[tuple[str, str], Tensor]) -> Tensor:
    query, key = (
        means[site.module, name].view(1, -1, 1, site.head_dim).expand(-1, -1, REACH, -1)
        for name in ("q", "k")
    )
    turned = core.rotary_emb(query, torch.arange(REACH)[None])
    query, key = apply_rotary_pos_emb(query, key, *(one.float() for one in turned))
    key = key.repeat_interleave(site.heads // site.kv_heads, dim=1)
    scores = (query[:, :, -1:] @ key.mT)[0, :, 0] * site.head_dim**-0.5
    return scores.softmax(-1).cumsum(-1).mean(-1)
