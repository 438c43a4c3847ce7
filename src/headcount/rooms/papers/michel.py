"""The best single head of every layer, and the authors' programs: Michel et al., NeurIPS 2019.

Tables 2 and 3 choose and judge a head on the same data, 5 and 6 of the appendix on other data.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from headcount.errors import UsageError
from headcount.importance import Sweep, ablation_costs, tokens_by_head
from headcount.models import Site, Subject
from headcount.records import Head
from headcount.tasks import Task
from headcount.text import Batch

#: How the head was chosen: on the examples that it is judged by, or on a half that it is not.
CHOSEN = ("same examples", "other half")


def best_single_heads(sweep: Sweep, heads: Sequence[Head], *, seed: int = 0) -> pd.DataFrame:
    """Two rows a layer, from a sweep over the `others` of these heads, corrected over layers.

    The first row is the naive one: the best of many is better than it should be. In the second
    the head is chosen on a random half of the examples and judged on the other.
    """
    parts = [_judged(_cheapest(sweep, heads), sweep, CHOSEN[0], seed)]
    if len(sweep.baseline) > 1:
        count = len(sweep.baseline)
        first = sorted(random.Random(seed).sample(range(count), count // 2))
        choosing, judging = sweep.part(first), sweep.part(sorted({*range(count)} - {*first}))
        parts.append(_judged(_cheapest(choosing, heads), judging, CHOSEN[1], seed))
    return pd.concat(parts, ignore_index=True)


def _cheapest(sweep: Sweep, heads: Sequence[Head]) -> dict[Head, int]:
    """Of every layer the head that costs least alone, and which intervention that is."""
    costs = np.nan_to_num(np.array(sweep.costs()), nan=np.inf)
    layers: dict[tuple[str, int], list[int]] = {}
    for place, head in enumerate(heads):
        layers.setdefault((head.stack, head.layer), []).append(place)
    best = [min(places, key=costs.__getitem__) for places in layers.values()]
    return {heads[place]: place for place in best}


def _judged(best: dict[Head, int], judging: Sweep, chosen: str, seed: int) -> pd.DataFrame:
    costs = ablation_costs(judging.some(list(best.values())), seed=seed)
    frame = pd.DataFrame(list(best), columns=["stack", "layer", "head"])
    figures = {"cost": costs.value, "low": costs.low, "high": costs.high}
    figures |= {"p": costs.p, "p_adjusted": costs.p_adjusted}
    return frame.assign(chosen_on=chosen, n=len(judging.baseline), **figures)


# --- The gradient score as their programs compute it --------------------------------------------

#: The tasks that they published programs for, and the kind of model of each.
_PROGRAMS = {"classification": "enc", "translation": "enc-dec"}


class GradientProgram:
    """How their program for a task makes batches, scales a batch's loss, and counts tokens."""

    def __init__(self, subject: Subject, task: Task) -> None:
        if _PROGRAMS.get(task.kind) != subject.kind:
            raise UsageError(
                f"Michel et al. published no program for tasks of the kind {task.kind} on a model "
                f"with {subject.kind} heads; use the convention headcount or paper."
            )
        self.subject, self.task = subject, task

    def batches(self, size: int) -> Iterator[Batch]:
        """Batches in the order of the examples."""
        for start in range(0, len(self.task), size):
            part = self.task.part(range(len(self.task))[start : start + size])
            for batch in part.batches(self.subject, size):
                yield replace(batch, index=[start + number for number in batch.index])

    def scale(self, batch: Batch) -> float:
        """The loss of a batch is its mean in the program for classifiers, else its sum."""
        return 1 / len(batch) if self.task.kind == "classification" else 1.0

    def counts(self, batch: Batch) -> np.ndarray:
        """What Michel et al.'s programs divide by, ``[example, head]``.

        For a classifier the tokens, but 1 an example in the last layer, where [CLS] alone has a
        gradient; for a translator the source's tokens, and all positions of the decoder, padding
        too.
        """
        last = max(site.layer for site in self.subject.anatomy.sites if site.stack == "enc")

        def count(site: Site, real: Tensor) -> Tensor:
            if site.stack != "enc":
                return torch.full_like(real[:, 0], real.shape[1], dtype=torch.long)
            by_example = self.subject.kind == "enc" and site.layer == last
            return real.any(1).long() if by_example else real.sum(1)

        return tokens_by_head(self.subject, batch, count)
