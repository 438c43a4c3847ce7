"""Gradients of a loss at every attention weight (Clark et al., BlackBoxNLP 2019, section 3.2).

A weight that can change without the loss noticing does nothing. The weights must lie in the graph,
so the family's own eager attention is run.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from headcount.errors import ModelError, UnsupportedModel
from headcount.models import Site, Subject, eval_mode, on_exit
from headcount.wiring import Attended, Turns, attached


@dataclass(frozen=True)
class Slope:
    """One site's weights and the loss's gradient there, both ``[batch, head, query, key]``."""

    site: Site
    weights: Tensor
    gradient: Tensor
    #: The attention mask of the call, where there was one.
    mask: Tensor | None


@contextmanager
def weights_gradient(subject: Subject) -> Iterator[WeightsGradient]:
    """Keep the attention weights of each forward within the block, to ask for their gradients.

    The model runs in evaluation mode and is exactly as before on any exit; no weight of it
    gets a `grad`.
    """
    outside = [site for site in subject.anatomy.sites if site.route != "interface"]
    if outside:
        raise UnsupportedModel(
            f"{subject.name} does not speak transformers' attention interface, so its attention "
            "weights cannot be reached while they are part of the graph; gradients of weights are "
            "for models that do."
        )
    kept = WeightsGradient(subject)
    still: list[Tensor] = []

    def restore() -> None:
        for weight in still:
            weight.requires_grad_(False)

    with (
        attached(subject, kept.keep, kept.turns, maps=True),
        eval_mode(subject.model),
        on_exit(restore),
        torch.enable_grad(),
    ):
        # Every weight takes part in the graph, also of a model that was frozen.
        floating = [weight for weight in subject.model.parameters() if weight.is_floating_point()]
        still += [weight for weight in floating if not weight.requires_grad]
        for weight in still:
            weight.requires_grad_(True)
        yield kept


class WeightsGradient:
    """The weights of the last forward, site by site, as the graph knows them."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self.turns = Turns(subject)
        self._weights: dict[Site, tuple[Tensor, Tensor | None]] = {}

    def keep(self, module: nn.Module, attended: Attended) -> Tensor:
        """The part on the seam: keep the weights, and leave the output as it is."""
        site = self.turns.next(module)
        self._weights[site] = attended.map_of(site), attended.mask
        return attended.output

    def of(self, loss: Tensor) -> list[Slope]:
        """The gradient of one number at every site; the forward's weights are freed.

        A site that the loss does not depend on, such as a decoder's behind an encoder's loss,
        is left out.
        """
        kept = {site: one for site, one in self._weights.items() if one[0].requires_grad}
        self._weights = {}
        if not kept:
            raise ModelError(
                f"No attention weight of {self.subject.name} lies in the graph of the loss; its "
                "eager attention detaches them."
            )
        found = torch.autograd.grad(loss, [one[0] for one in kept.values()], allow_unused=True)
        return [
            Slope(site, weights.detach(), gradient, mask)
            for (site, (weights, mask)), gradient in zip(kept.items(), found, strict=True)
            if gradient is not None
        ]
