"""Listen: see what the heads of every site give, and leave it alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from torch import Tensor, nn

from headcount.models.alone import alone
from headcount.models.site import Site
from headcount.subject import Subject
from headcount.wiring.projection import scaled_projections
from headcount.wiring.seam import Attended, Turns, attached

__all__ = ["Hear", "listening"]

#: Gets a site and what happened there; `output` is `[row, query, head, dim]`.
Hear = Callable[[Site, Attended], None]


@contextmanager
def listening(subject: Subject, hear: Hear) -> Iterator[None]:
    """Within the block, `hear` is shown every site of every forward of the model."""
    turns = Turns(subject.model, subject.anatomy)

    def part(module: nn.Module, attended: Attended) -> Tensor:
        hear(turns.next(module), attended)
        return attended.output

    def entering(module: nn.Module, heads: Tensor) -> Tensor:
        return part(module, Attended(heads, None, None))

    with ExitStack() as stack:
        stack.enter_context(alone(subject.model))
        stack.enter_context(turns.counted(subject.model))
        stack.enter_context(attached(subject.model, subject.anatomy, part))
        stack.enter_context(scaled_projections(subject.model, subject.anatomy, entering))
        yield
