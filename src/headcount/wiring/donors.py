"""Resample ablation: a head gives what it gives on another example, its donor."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor

from headcount.models.probe import quiet_arguments
from headcount.models.rest import at_rest
from headcount.models.site import Site
from headcount.subject import Subject
from headcount.text.batch import Batch
from headcount.wiring.listen import listening
from headcount.wiring.seam import Attended

__all__ = ["Donors", "donors_of"]


class Donors:
    """What the heads gave on other examples, laid out for the rows of one batch.

    The n-th token of a row gets what the donor's n-th token gave; a donor that is too short
    starts again from its first.
    """

    def __init__(self, batch: Batch, given: dict[Site, dict[int, Tensor]]) -> None:
        self._batch = batch
        #: By site and row, what each real token of the donor gave: `[token, head, dim]`.
        self._given = given
        self._laid: dict[Site, Tensor] = {}

    def __call__(self, site: Site, attended: Attended) -> Tensor:
        """What the heads of a site give instead, `[row, query, head, dim]`."""
        if site not in self._laid:
            self._laid[site] = self._lay(site, attended.output)
        laid = self._laid[site]
        return laid.repeat(attended.output.shape[0] // len(laid), 1, 1, 1)

    def _lay(self, site: Site, output: Tensor) -> Tensor:
        given = self._given[site]
        real = _real(self._batch, site, len(given), output.shape[1]).to(output.device)
        places = (real.long().cumsum(dim=1) - 1).clamp_min(0)
        return torch.stack([given[row][places[row] % len(given[row])] for row in range(len(given))])


def donors_of(
    subject: Subject, batch: Batch, lent: Iterable[tuple[Batch, Sequence[int]]]
) -> Donors:
    """Run donors and keep what their heads give.

    `lent` are the donors: batches, and for each of their rows the row of `batch` that it is for.
    """
    given: dict[Site, dict[int, Tensor]] = {site: {} for site in subject.anatomy.sites}
    quiet = quiet_arguments(subject.model)
    for donors, rows in lent:

        def hear(
            site: Site, attended: Attended, donors: Batch = donors, rows: Sequence[int] = rows
        ) -> None:
            heads = attended.output
            real = _real(donors, site, *heads.shape[:2]).to(heads.device)
            for place, row in enumerate(rows):
                given[site][row] = heads[place][real[place]]

        with at_rest(subject.model), torch.no_grad(), listening(subject, hear):
            subject.model(**donors.to(subject.device).inputs, **quiet)
    return Donors(batch, given)


def _real(batch: Batch, site: Site, rows: int, queries: int) -> Tensor:
    """True at the real tokens that ask in a stack; everywhere, where only the model knows them."""
    side = batch.query(site.stack)
    if side is None or side.real.shape != (rows, queries):
        return torch.ones(rows, queries, dtype=torch.bool)
    return side.real
