"""Gradients of a loss at the heads: at what each head gives, and at every attention weight.

The first times what the head gives is dL/dxi_h, the slope of the loss in the head's scale (Michel
et al., NeurIPS 2019, section 4.1). The second is Clark et al.'s (BlackBoxNLP 2019, section 3.2): a
weight that can change without the loss noticing does nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from headcount.errors import ModelError, UnsupportedModel, UsageError
from headcount.models import Site, Subject, eval_mode, frozen, on_exit
from headcount.wiring.seam import Attended, Turns, attached

# --- At what each head gives --------------------------------------------------------------------
# Still apart for every example, position and dimension.

#: Gets a site, what its heads gave and its gradient, each `[row, query, head, dim]`.
Receiver = Callable[[Site, Tensor, Tensor], None]


@contextmanager
def backflow(subject: Subject, receive: Receiver) -> Iterator[Backflow]:
    """Within the block, `flow.backward(loss)` shows `receive` every site that the loss depends on.

    The model is in evaluation mode, its weights take no gradient, and nothing is multiplied: the
    forward is the plain one. The backward ends at the first heads, not at the embeddings.
    """
    flow = Backflow(subject, receive)
    with (
        torch.inference_mode(False),
        torch.enable_grad(),
        attached(subject, flow.follow, flow.turns),
        eval_mode(subject.model),
        frozen(subject.model),
    ):
        yield flow


class Backflow:
    """A reader of gradients at work."""

    def __init__(self, subject: Subject, receive: Receiver) -> None:
        self.name = subject.name
        self.turns = Turns(subject)
        self._receive = receive
        self._first: list[Tensor] = []

    def follow(self, module: nn.Module, attended: Attended) -> Tensor:
        """The part on the seam: wait for the gradient of what the heads gave; change nothing."""
        site, output = self.turns.next(module), attended.output
        given = output.detach()
        if not output.requires_grad:  # nothing before asks for a gradient: the first heads
            output = given.requires_grad_()
            self._first.append(output)
            given = output.detach()
        # The hook holds the detached twin: holding the tensor that holds the hook would leak.
        output.register_hook(lambda gradient: self._receive(site, given, gradient))
        return output

    def backward(self, loss: Tensor) -> None:
        """Send the gradient of a loss back through all heads that were seen since the last one."""
        first, self._first = self._first, []
        if not loss.requires_grad or not first:
            raise UsageError(
                f"The loss does not depend on the heads of {self.name} in a way that can be "
                "differentiated; compute it with torch from what the model gives, without "
                "no_grad, detach or numpy."
            )
        torch.autograd.grad(loss, first, allow_unused=True)


# --- At every attention weight ------------------------------------------------------------------
# The weights must lie in the graph, so the family's own eager attention is run.


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
