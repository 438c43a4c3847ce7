"""Read what each head gives and what flows back to it: Att_h(x) and dL/dAtt_h(x).

Their product is dL/dxi_h, the slope of the loss in the head's scale (Michel et al., NeurIPS 2019,
section 4.1), here still apart for every example, position and dimension.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import torch
from torch import Tensor, nn

from headcount.errors import UsageError
from headcount.models.alone import alone
from headcount.models.frozen import frozen
from headcount.models.rest import at_rest
from headcount.models.site import Site
from headcount.subject import Subject
from headcount.wiring.projection import scaled_projections
from headcount.wiring.seam import Attended, Turns, attached

__all__ = ["Backflow", "backflow"]

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
        stack.enter_context(alone(subject.model))
        stack.enter_context(at_rest(subject.model))
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
