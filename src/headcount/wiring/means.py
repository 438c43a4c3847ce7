"""Mean ablation: a head gives always the same, the mean of what it gives on reference texts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import torch
from torch import Tensor

from headcount.models.probe import quiet_arguments
from headcount.models.rest import at_rest
from headcount.models.site import Site
from headcount.subject import Subject
from headcount.text.batch import Batch
from headcount.wiring.listen import listening
from headcount.wiring.seam import Attended

__all__ = ["Means", "means_of"]


class Means:
    """The mean output of every head, `[head, dim]` by site."""

    def __init__(self, by_site: dict[Site, Tensor]) -> None:
        self.by_site = by_site

    def __call__(self, site: Site, attended: Attended) -> Tensor:
        """What the heads of a site give instead, `[1, 1, head, dim]`."""
        return self.by_site[site].to(attended.output)[None, None]


def means_of(subject: Subject, batches: Iterable[Batch]) -> Means:
    """Means over all real tokens of all batches, in float64, so that batches do not show.

    Where only the model knows its tokens (images, sound) all positions count.
    """
    sums: dict[Site, Tensor] = {}
    counts: dict[Site, int] = defaultdict(int)
    real: dict[str, Tensor | None] = {}

    def hear(site: Site, attended: Attended) -> None:
        heads = attended.output
        there = real[site.stack]
        if there is None or there.shape != heads.shape[:2]:
            there = torch.ones(heads.shape[:2], dtype=torch.bool)
        given = heads[there.to(heads.device)].double()
        sums[site] = sums.get(site, 0) + given.sum(dim=0)
        counts[site] += len(given)

    quiet = quiet_arguments(subject.model)
    with at_rest(subject.model), torch.no_grad(), listening(subject, hear):
        for batch in batches:
            sides = {stack: batch.query(stack) for stack in subject.anatomy.stacks}
            real = {stack: None if side is None else side.real for stack, side in sides.items()}
            subject.model(**batch.to(subject.device).inputs, **quiet)
    return Means({site: (total / counts[site]).float() for site, total in sums.items()})
