"""Scale heads: multiply what each head gives, before the output projection.

One number per head is Michel et al.'s mask variable xi_h (NeurIPS 2019, section 2.1) and
Voita et al.'s gate g_i (ACL 2019, eq. 4); zero is an ablation; its gradient is importance.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from torch import Tensor, nn

from headcount.errors import UsageError
from headcount.models.alone import alone
from headcount.models.site import Site
from headcount.subject import Subject
from headcount.wiring.projection import scaled_projections
from headcount.wiring.replay import Replay
from headcount.wiring.scales import ScalesLike, read_scales
from headcount.wiring.seam import Attended, Turns, attached

__all__ = ["Valve", "valve"]


@contextmanager
def valve(subject: Subject, scales: ScalesLike) -> Iterator[Valve]:
    """Scale heads within the block; the model is exactly as before on any exit.

    `scales` names heads (`{"enc.0.3": 0.0}`), or is a tensor `[head]` or `[batch, head]` in
    the order of `subject.heads`. Differentiable, works in `generate` (beams of one sentence
    share its scales), in training mode and under gradient checkpointing.
    """
    opened = Valve(subject, scales)
    with ExitStack() as stack:
        stack.enter_context(alone(subject.model))
        stack.enter_context(opened.turns.counted(subject.model))
        stack.enter_context(opened.replay.watching(subject.model))
        stack.enter_context(attached(subject.model, subject.anatomy, opened))
        stack.enter_context(scaled_projections(subject.model, subject.anatomy, opened.multiply))
        yield opened


class Valve:
    """Scales at work; `scales` may be replaced by another tensor between forwards."""

    def __init__(self, subject: Subject, scales: ScalesLike) -> None:
        self.scales = read_scales(scales, subject.heads)
        self.spans = subject.anatomy.spans
        self.turns = Turns(subject.model, subject.anatomy)
        self.replay: Replay[tuple[Site, Tensor]] = Replay()

    def __call__(self, module: nn.Module, attended: Attended) -> Tensor:
        """Scale the heads of one attention call."""
        return self.multiply(module, attended.output)

    def multiply(self, module: nn.Module, output: Tensor) -> Tensor:
        """Scale head outputs `[batch, query, head, dim]` of the module's current site."""
        # The whole tensor is noted and cut here: a slice made in a reentrant checkpoint's
        # first run, which keeps no graph, would carry no gradient.
        site, scales = self.replay.note(lambda: (self.turns.next(module), self.scales))
        return output * self._fit(scales[..., self.spans[site]], output)

    def _fit(self, scale: Tensor, output: Tensor) -> Tensor:
        """Shape a scale like the output: `[batch or 1, 1, head, 1]`."""
        scale = scale.to(device=output.device, dtype=output.dtype)
        if scale.dim() == 1:
            return scale[None, None, :, None]
        rows, examples = output.shape[0], scale.shape[0]
        if rows % examples:
            raise UsageError(
                f"The valve has scales for {examples} examples, but the model was called on "
                f"{rows} rows; give as many as the batch has, or one scale a head."
            )
        return scale.repeat_interleave(rows // examples, dim=0)[:, None, :, None]
