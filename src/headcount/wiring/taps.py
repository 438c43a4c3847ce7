"""Read heads: run batches through the model and see what the tallies need, site by site."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from headcount.errors import ModelError
from headcount.models import Site, Subject, on_exit, own_maps, quiet_arguments, window_of
from headcount.records import STACKS
from headcount.text import Batch
from headcount.wiring.seam import Attended, Turns, attached
from headcount.wiring.sighting import Needs, Sighting, check_ids, look

Receiver = Callable[[Sighting], None]


@contextmanager
def tap(
    subject: Subject, needs: Needs | None = None, *, stacks: Collection[str] | None = None
) -> Iterator[Watch]:
    """Watch heads within the block; the model is exactly as before on any exit.

    `watch(batch)` runs the batch and returns a `Sighting` for each site, holding what `needs`
    asks for (the maps, by default). With `receive` each sighting is handed over as soon as
    it is made and not kept, so that one layer's map lives at a time. `stacks` looks at some
    of the stacks only.
    """
    watch = Watch(subject, needs or Needs(maps=True), stacks or STACKS)
    training: list[nn.Module] = []

    def restore() -> None:
        for module in training:
            module.training = True

    with attached(subject, watch.seen, watch.turns, maps=True), on_exit(restore):
        training += [module for module in subject.model.modules() if module.training]
        for module in training:
            module.training = False
        yield watch


class Watch:
    """A running tap."""

    def __init__(self, subject: Subject, needs: Needs, stacks: Collection[str]) -> None:
        self.subject = subject
        self.needs = needs
        self.stacks = stacks
        self.turns = Turns(subject)
        self._quiet = quiet_arguments(subject.model)
        self._now: tuple[Batch, Receiver] | None = None
        self._seen: set[Site] = set()

    def __call__(self, batch: Batch, receive: Receiver | None = None) -> list[Sighting]:
        """Run a batch; return its sightings, or hand each to `receive` and return none."""
        kept: list[Sighting] = []
        check_ids(self.subject, batch.inputs)
        batch = batch.to(self.subject.device)
        self._now = batch, receive or kept.append
        self._seen = set()
        try:
            with torch.no_grad():
                for site, maps, mask in recorded_maps(self.subject, batch, self._quiet):
                    if site.stack in self.stacks:
                        self._show(site, maps, mask)
            self._check_all_seen()
        finally:
            self._now = None
        return kept

    def seen(self, module: nn.Module, attended: Attended) -> Tensor:
        """The part on the seam: look at a map as it passes, leave the output alone."""
        site = self.turns.next(module)
        if self._now is not None and site.stack in self.stacks:
            self._show(site, attended.map_of(site), attended.mask)
        return attended.output

    def _show(self, site: Site, maps: Tensor, mask: Tensor | None) -> None:
        assert self._now is not None
        batch, receive = self._now
        self._seen.add(site)
        receive(look(site, maps, mask, batch, self.needs))

    def _check_all_seen(self) -> None:
        """Raise for a site that the forward went past: its heads would be missing silently."""
        for site in self.subject.anatomy.sites:
            if site.stack in self.stacks and site not in self._seen:
                raise ModelError(
                    f"{self.subject.name} ran without its attention at {site.stack}.{site.layer} "
                    f"({site.module}) being seen; run it whole, uncompiled and in this process."
                )


# --- Maps from the model's own `output_attentions` ----------------------------------------------


def recorded_maps(
    subject: Subject, batch: Batch, arguments: dict[str, Any]
) -> Iterator[tuple[Site, Tensor, Tensor | None]]:
    """Run the batch; yield the maps `[batch, head, query, key]` that the seam cannot see.

    With each map comes the attention mask, where it is more than padding and causality.
    The maps of all layers are held until the forward ends, since these families hand them
    over together; each is let go as soon as the next one is asked for.
    """
    sites = [site for site in subject.anatomy.sites if site.route == "projection"]
    if not sites:
        subject.model(**batch.inputs, **arguments)
        return
    found = own_maps(subject.model, batch.inputs | arguments)
    counts = Counter(site.stack for site in sites)
    waiting = {stack: found.of(stack, count) for stack, count in counts.items()}
    del found
    for site in sites:
        maps = waiting[site.stack].pop(0)
        _check_shape(subject, site, maps, batch)
        yield site, maps, window_of(subject.model, site, maps)


def _check_shape(subject: Subject, site: Site, maps: Tensor, batch: Batch) -> None:
    query, key = batch.query(site.stack), batch.key(site.stack)
    wanted = [maps.shape[0], site.heads, *maps.shape[2:]]
    if query is not None:
        wanted[0], wanted[2] = query.real.shape
    if key is not None:
        wanted[3] = key.real.shape[1]
    if list(maps.shape) != wanted:
        raise ModelError(
            f"{type(subject.model).__name__} gave an attention map of shape {list(maps.shape)} at "
            f"{site.stack}.{site.layer}, not {wanted} as [batch, head, query, key]."
        )
