"""The gradient of a loss with respect to every attention weight, at the softmax of every head.

Clark et al., BlackBoxNLP 2019, section 3.2: a weight that can change without the loss noticing
does nothing. The weights must lie in the graph, so the family's own eager attention is run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from headcount.errors import ModelError, UnsupportedModel, UsageError
from headcount.models import Site, Subject, eval_mode, frozen, locked
from headcount.wiring.seam import Attended, Turns, attached, scaled_projections

# --- Read what each head gives and what flows back to it ----------------------------------------
# Their product is dL/dxi_h, the slope of the loss in the head's scale (Michel et al., NeurIPS 2019,
# section 4.1), here still apart for every example, position and dimension.

#: Gets a site, what its heads gave and its gradient, each `[row, query, head, dim]`.
Receiver = Callable[[Site, Tensor, Tensor], None]


@contextmanager
def backflow(subject: Subject, receive: Receiver) -> Iterator[Backflow]:
    """Within the block, `flow.backward(loss)` shows `receive` every site that the loss depends on.

    The model is in evaluation mode, its weights take no gradient, and nothing is multiplied: the
    forward is the plain one. The backward ends at the first heads, not at the embeddings.
    """
    flow = Backflow(subject, receive)
    with ExitStack() as stack:
        stack.enter_context(torch.inference_mode(False))
        stack.enter_context(torch.enable_grad())
        stack.enter_context(locked(subject.model))
        stack.enter_context(eval_mode(subject.model))
        stack.enter_context(frozen(subject.model))
        stack.enter_context(flow.turns.counted(subject.model))
        stack.enter_context(attached(subject.model, subject.anatomy, flow))
        stack.enter_context(scaled_projections(subject.model, subject.anatomy, flow.follow))
        yield flow


class Backflow:
    """A reader of gradients at work."""

    def __init__(self, subject: Subject, receive: Receiver) -> None:
        self.name = subject.name
        self.turns = Turns(subject.model, subject.anatomy)
        self._receive = receive
        self._first: list[Tensor] = []

    def __call__(self, module: nn.Module, attended: Attended) -> Tensor:
        """The part on the seam."""
        return self.follow(module, attended.output)

    def follow(self, module: nn.Module, output: Tensor) -> Tensor:
        """Wait for the gradient of head outputs `[row, query, head, dim]`; leave them alone."""
        site = self.turns.next(module)
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


# --- The gradient of a loss with respect to every attention weight ------------------------------


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
    with ExitStack() as stack:
        stack.enter_context(locked(subject.model))
        stack.enter_context(eval_mode(subject.model))
        stack.enter_context(_differentiable(subject.model))
        stack.enter_context(kept.turns.counted(subject.model))
        stack.enter_context(attached(subject.model, subject.anatomy, kept, maps=True))
        stack.enter_context(torch.enable_grad())
        yield kept


class WeightsGradient:
    """The weights of the last forward, site by site, as the graph knows them."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self.turns = Turns(subject.model, subject.anatomy)
        self._weights: dict[Site, tuple[Tensor, Tensor | None]] = {}

    def __call__(self, module: nn.Module, attended: Attended) -> Tensor:
        """The part on the seam: keep the weights, leave the output alone."""
        site = self.turns.next(module)
        if attended.weights is None:
            raise ModelError(
                f"The attention at {site.stack}.{site.layer} ({site.module}) gave no weights; "
                "its eager implementation must return them."
            )
        self._weights[site] = attended.weights, attended.mask
        return attended.output

    def of(self, loss: Tensor) -> list[Slope]:
        """The gradient of one number at every site; the forward's weights are let go of.

        A site that the loss does not depend on, such as a decoder's behind an encoder's loss,
        is left out.
        """
        sites = [site for site, (weights, _) in self._weights.items() if weights.requires_grad]
        kept = {site: self._weights[site] for site in sites}
        self._weights = {}
        if not kept:
            raise ModelError(
                f"No attention weight of {self.subject.name} lies in the graph of the loss; its "
                "eager attention detaches them."
            )
        found = torch.autograd.grad(loss, [kept[site][0] for site in sites], allow_unused=True)
        return [
            Slope(site, kept[site][0].detach(), gradient, kept[site][1])
            for site, gradient in zip(sites, found, strict=True)
            if gradient is not None
        ]


@contextmanager
def _differentiable(model: nn.Module) -> Iterator[None]:
    """Every weight takes part in the graph for this block, also of a model that was frozen."""
    still = [
        weight
        for weight in model.parameters()
        if weight.is_floating_point() and not weight.requires_grad
    ]
    try:
        for weight in still:
            weight.requires_grad_(True)
        yield
    finally:
        for weight in still:
            weight.requires_grad_(False)
