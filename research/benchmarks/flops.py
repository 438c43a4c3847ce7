"""The arithmetic of a forward, counted from the matrices that ran: what a re-run cannot do without.

Only matrix products count, two operations a multiplication; norms, softmax and activations do not.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from transformers.pytorch_utils import Conv1D

from headcount.models.site import Site
from headcount.models.subject import Subject
from headcount.rooms.shortcut.shortcut import Course, course_of
from headcount.text.batch import Batch
from headcount.wiring.seam import Attended, listening

__all__ = ["Cost", "floor", "forward_cost"]


@dataclass
class Cost:
    """Operations of one forward: by block, before, within and after the attention of each site."""

    #: Everything.
    total: float = 0.0
    #: The attention of a site: projections in and out, and the products with its map.
    attention: dict[Site, float] = field(default_factory=lambda: defaultdict(float))
    #: What a site projects of the encoder's output: the same whatever the decoder does.
    crossing: dict[Site, float] = field(default_factory=lambda: defaultdict(float))
    #: Blocks, their attention included, in the order they run.
    blocks: list[float] = field(default_factory=list)


def forward_cost(subject: Subject, batch: Batch) -> tuple[Cost, Course]:
    """Count one forward of a batch."""
    course = course_of(subject, batch)
    cost = Cost(blocks=[0.0] * len(course.steps))
    with _counting(subject, course, cost), torch.no_grad():
        subject.model(**batch.inputs)
    return cost, course


def floor(
    cost: Cost, course: Course, heads: Mapping[Site, int], *, cross_once: bool = True
) -> float:
    """The least share of whole evaluations, one a head and one more, that ablations can take.

    For a head: everything behind its layer's output projection. With `cross_once` the decoder's
    projections of an unchanged encoder output count once, in the whole run.
    """
    spent = cost.total
    for site, count in heads.items():
        behind = _behind(cost, course, site)
        if cross_once and site.stack != "enc":
            later = [s for s in course.passages if course.order[s] > course.order[site]]
            behind -= sum(cost.crossing[other] for other in later)
        spent += count * behind
    return spent / (cost.total * (sum(heads.values()) + 1))


def _behind(cost: Cost, course: Course, site: Site) -> float:
    """All operations that come after a site's attention."""
    step = course.passages[site].step
    here = sum(
        cost.attention[other]
        for other, passage in course.passages.items()
        if passage.step == step and course.order[other] <= course.order[site]
    )
    return cost.total - sum(cost.blocks[:step]) - here


@contextmanager
def _counting(subject: Subject, course: Course, cost: Cost) -> Iterator[None]:
    at: dict[str, Any] = {"step": -1, "inside": [], "site": None}
    sites: dict[nn.Module, list[Site]] = defaultdict(list)
    for site, passage in course.passages.items():
        sites[passage.attention].append(site)

    def add(amount: float, site: Site | None) -> None:
        cost.total += amount
        if at["inside"]:
            cost.blocks[at["step"]] += amount
        if site is not None:
            cost.attention[site] += amount

    def product(module: nn.Module, args: tuple[Any, ...], output: Tensor) -> None:
        amount = 2.0 * args[0].numel() * output.shape[-1]
        site = owner.get(module)
        add(amount, site)
        if site is not None and module in course.crossing:
            cost.crossing[site] += amount

    def heard(site: Site, attended: Attended) -> None:
        rows, queries, heads, dim = attended.output.shape
        keys = attended.value.shape[-2] if attended.value is not None else queries
        add(4.0 * rows * queries * keys * heads * dim, site)

    owner = {
        module: site
        for site, passage in course.passages.items()
        for module in [*passage.attention.modules(), passage.projection]
        if module is not None
    }
    with ExitStack() as stack:
        for block in dict.fromkeys(course.steps):
            stack.callback(block.register_forward_pre_hook(lambda *_: _enter(at)).remove)
            stack.callback(block.register_forward_hook(lambda *_: at["inside"].clear()).remove)
        for module in subject.model.modules():
            if isinstance(module, nn.Linear | Conv1D):
                stack.callback(module.register_forward_hook(product).remove)
        stack.enter_context(listening(subject, heard))
        yield


def _enter(at: dict[str, Any]) -> None:
    at["step"] += 1
    at["inside"].append(True)
