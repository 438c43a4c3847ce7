"""Maps whose truth is known, shown to a question as a tap would show them."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from headcount.models.site import Site
from headcount.rooms.trials.inputs import TrialMetric
from headcount.surveys.trial import TrialCounts
from headcount.text.batch import Batch, ready_batch
from headcount.wiring.sighting import look


def site_of(stack: str, heads: int, *, causal: bool = False) -> Site:
    """A site of a model that is not there."""
    return Site(stack, 0, heads=heads, kv_heads=heads, head_dim=4, module="a", causal=causal)


def rows_of(ids: Sequence[Sequence[int]], stacks: Sequence[str]) -> Batch:
    """Rows of one length as a batch."""
    return ready_batch({"input_ids": torch.tensor(ids)}, stacks)


def pointing(targets: Sequence[Sequence[int]], keys: int) -> Tensor:
    """Maps ``[1, head, query, key]`` in which each head's row has all its weight on one key."""
    maps = torch.zeros(1, len(targets), len(targets[0]), keys)
    for head, row in enumerate(targets):
        maps[0, head, torch.arange(len(row)), torch.tensor(row)] = 1
    return maps


def uniform(queries: int, *, causal: bool) -> Tensor:
    """Even weight on everything that may be seen, ``[query, key]``."""
    even = torch.ones(queries, queries)
    even = even.tril() if causal else even
    return even / even.sum(-1, keepdim=True)


def show(question: TrialMetric, site: Site, maps: Tensor, batch: Batch) -> None:
    """Let a question look at a map."""
    question.update(look(site, maps, None, batch, question.needs))


def scores(marks: TrialCounts, site: Site) -> list[float]:
    """Each head's hits in cells over all examples."""
    counted = marks.of(site)
    return (counted.hits.sum(0) / counted.cells.sum(0)).tolist()


def chances(marks: TrialCounts, site: Site) -> list[float]:
    """What chance would get."""
    counted = marks.of(site)
    return (counted.chance.sum(0) / counted.cells.sum(0)).tolist()
