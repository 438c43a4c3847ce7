"""Read heads: run batches through the model and see what the tallies need, site by site."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from headcount.errors import ModelError
from headcount.models import Site, Subject, locked, own_maps, quiet_arguments, window_of
from headcount.records import STACKS
from headcount.text import Batch
from headcount.wiring.seam import Attended, Turns, attached
from headcount.wiring.sighting import Needs, Sighting, check_ids, look

# --- Maps from the model's own `output_attentions` ----------------------------------------------


def recorded_maps(
    subject: Subject, batch: Batch, arguments: dict[str, Any]
) -> Iterator[tuple[Site, Tensor, Tensor | None]]:
    """Run the batch; yield the maps `[batch, head, query, key]` that the seam cannot see.

    Beside each map comes the attention mask, where it is more than padding and causality.
    The maps of all layers are held until the forward ends, since these families hand them
    over together; each is let go as soon as the next one is asked for.
    """
    sites = [site for site in subject.anatomy.sites if site.route == "projection"]
    if not sites:
        subject.model(**batch.inputs, **arguments)
        return
    found = own_maps(subject.model, batch.inputs | arguments)
    stacks = {site.stack for site in sites}
    waiting = {
        stack: found.of(stack, sum(site.stack == stack for site in sites)) for stack in stacks
    }
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


# --- Read heads ---------------------------------------------------------------------------------

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
    with ExitStack() as stack:
        stack.enter_context(locked(subject.model))
        stack.enter_context(_evaluating(subject.model))
        stack.enter_context(watch.turns.counted(subject.model))
        stack.enter_context(attached(subject.model, subject.anatomy, watch.seen, maps=True))
        yield watch


class Watch:
    """A running tap."""

    def __init__(self, subject: Subject, needs: Needs, stacks: Collection[str]) -> None:
        self.subject = subject
        self.needs = needs
        self.stacks = stacks
        self.turns = Turns(subject.model, subject.anatomy)
        self._quiet = quiet_arguments(subject.model)
        self._batch: Batch | None = None
        self._seen: set[Site] = set()
        self._receive: Receiver = _ignore

    def __call__(self, batch: Batch, receive: Receiver | None = None) -> list[Sighting]:
        """Run a batch; return its sightings, or hand each to `receive` and return none."""
        kept: list[Sighting] = []
        check_ids(self.subject, batch.inputs)
        batch = batch.to(self.subject.device)
        self._batch, self._receive = batch, receive or kept.append
        self._seen = set()
        try:
            with torch.no_grad():
                for site, maps, mask in recorded_maps(self.subject, batch, self._quiet):
                    if site.stack in self.stacks:
                        self._show(site, maps, mask)
            self._check_all_seen()
        finally:
            self._batch, self._receive = None, _ignore
        return kept

    def seen(self, module: nn.Module, attended: Attended) -> Tensor:
        """The part on the seam: look at a map as it passes, leave the output alone."""
        site = self.turns.next(module)
        if self._batch is not None and site.stack in self.stacks:
            self._show(site, _present(site, attended.weights), attended.mask)
        return attended.output

    def _show(self, site: Site, maps: Tensor, mask: Tensor | None) -> None:
        assert self._batch is not None
        self._seen.add(site)
        self._receive(look(site, maps, mask, self._batch, self.needs))

    def _check_all_seen(self) -> None:
        """Raise for a site that the forward went past: its heads would be missing unsaid."""
        for site in self.subject.anatomy.sites:
            if site.stack in self.stacks and site not in self._seen:
                raise ModelError(
                    f"{self.subject.name} ran without its attention at {site.stack}.{site.layer} "
                    f"({site.module}) being seen; run it whole, uncompiled and in this process."
                )


def _present(site: Site, weights: Tensor | None) -> Tensor:
    if weights is None:
        raise ModelError(
            f"The attention at {site.stack}.{site.layer} ({site.module}) gave no weights; "
            "its eager implementation must return them."
        )
    return weights


def _ignore(_: Sighting) -> None:
    """Nobody is listening."""


@contextmanager
def _evaluating(model: nn.Module) -> Iterator[None]:
    """Evaluation mode for the block, module by module as it was afterwards."""
    before = [module for module in model.modules() if module.training]
    try:
        for module in before:
            module.training = False
        yield
    finally:
        for module in before:
            module.training = True
