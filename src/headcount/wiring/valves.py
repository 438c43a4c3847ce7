"""Scale heads: multiply what each head gives, before the output projection.

One number per head is Michel et al.'s mask variable xi_h (NeurIPS 2019, section 2.1) and
Voita et al.'s gate g_i (ACL 2019, eq. 4); zero is an ablation; its gradient is importance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor, nn

from headcount.errors import UsageError
from headcount.models import (
    Site,
    Subject,
    eval_mode,
    frozen,
    on_exit,
    own_thread,
)
from headcount.records import Head, check_heads, parse_head, parse_heads
from headcount.wiring.seam import Attended, Turns, attached

# --- The numbers a valve multiplies heads by ----------------------------------------------------

ScalesLike = Mapping[str, Any] | Mapping[Head, Any] | Tensor


def read_scales(scales: ScalesLike, heads: list[Head]) -> Tensor:
    """One scale a head, `[head]`, or one a head and example, `[batch, head]`.

    Gradients flow to the values that were given.

    >>> heads = [Head("enc", 0, 0), Head("enc", 0, 1)]
    >>> read_scales({"enc.0.1": 0.0}, heads)
    tensor([1., 0.])
    """
    if isinstance(scales, Tensor):
        count = len(heads)
        if scales.dim() not in (1, 2) or scales.shape[-1] != count or not len(scales):
            raise UsageError(
                f"A tensor of scales has shape [{count}] or [batch, {count}] for this model's "
                f"{count} heads, not {tuple(scales.shape)}."
            )
        return scales if scales.is_floating_point() else scales.float()
    if not isinstance(scales, Mapping):
        raise UsageError(
            f"Scales are a mapping such as {{'enc.0.3': 0.0}} or a tensor [head] or [batch, head], "
            f"not a {type(scales).__name__}."
        )
    named = {parse_head(name): _scale(name, value) for name, value in scales.items()}
    check_heads(named, heads)
    counts = [(head, len(scale)) for head, scale in named.items() if scale.dim()]
    for (first, count), (head, other) in pairwise(counts):
        if other != count:
            raise UsageError(
                f"{first} has scales for {count} examples and {head} for {other}; give as many as "
                "the batch has."
            )
    device = next((scale.device for scale in named.values()), torch.device("cpu"))
    one = torch.ones((), device=device)
    columns = [named[head].to(device) if head in named else one for head in heads]
    return torch.stack(torch.broadcast_tensors(*columns), dim=-1)


def _scale(head: object, value: Any) -> Tensor:
    """The scale of one head, or its scales by example."""
    try:
        scale = torch.as_tensor(value)
    except (TypeError, ValueError, RuntimeError):
        raise UsageError(
            f"The scale of {head} is {value!r}; give a number, or one a sentence of the batch."
        ) from None
    if scale.dim() > 1 or not scale.numel():
        raise UsageError(
            f"The scale of {head} has shape {tuple(scale.shape)}; give one number, "
            "or one a sentence of the batch."
        )
    return scale if scale.is_floating_point() else scale.float()


# --- Gradient checkpointing: a recompute must see what its own forward saw ----------------------
# A checkpointed segment runs twice, the second time inside `backward`, in reverse order of
# layers. What the first run used is written down per segment and handed out again.

T = TypeVar("T")

_FUNCTION = "_gradient_checkpointing_func"


@dataclass
class _Segment(Generic[T]):
    notes: list[T] = field(default_factory=list)
    done: bool = False


class Replay(Generic[T]):
    """Notes taken during checkpointed segments and replayed when they are recomputed."""

    def __init__(self) -> None:
        self._open = False
        self._segment: _Segment[T] | None = None
        self._pending: Iterator[T] | None = None

    def note(self, make: Callable[[], T]) -> T:
        """What to use for this attention call: new in a forward, as before in a recompute."""
        if self._pending is not None:
            return next(self._pending)
        made = make()
        if self._segment is not None:
            self._segment.notes.append(made)
        return made

    @contextmanager
    def watching(self, model: nn.Module) -> Iterator[None]:
        """Follow every checkpointed segment of the model for this block."""
        modules = [module for module in model.modules() if _FUNCTION in vars(module)]
        before = [(module, vars(module)[_FUNCTION]) for module in modules]

        def restore() -> None:
            self._open = False
            for module, function in before:
                setattr(module, _FUNCTION, function)

        with on_exit(restore):
            self._open = True
            for module, function in before:
                setattr(module, _FUNCTION, self._followed(function))
            yield

    def _followed(self, checkpoint: Callable[..., Any]) -> Callable[..., Any]:
        ours = own_thread()

        def follow(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
            if not ours():
                return checkpoint(function, *args, **kwargs)
            segment: _Segment[T] = _Segment()

            def run(*inner: Any, **named: Any) -> Any:
                with self._playing(segment):
                    return function(*inner, **named)

            return checkpoint(run, *args, **kwargs)

        return follow

    @contextmanager
    def _playing(self, segment: _Segment[T]) -> Iterator[None]:
        if segment.done and not self._open:
            raise UsageError(
                "The valve was closed before backward(), and gradient checkpointing needs it again "
                "to recompute the forward; call backward() inside the `with valve(...)` block."
            )
        outer = self._segment, self._pending
        try:
            if segment.done:
                self._segment, self._pending = None, iter(segment.notes)
            else:
                self._segment, self._pending = segment, None
            yield
        finally:
            segment.done = True
            self._segment, self._pending = outer


# --- Scale heads --------------------------------------------------------------------------------


@contextmanager
def valve(subject: Subject, scales: ScalesLike) -> Iterator[Valve]:
    """Scale heads within the block; the model is exactly as before on any exit.

    `scales` names heads (`{"enc.0.3": 0.0}`), or is a tensor `[head]` or `[batch, head]` in
    the order of `subject.heads`. Differentiable, works in `generate` (beams of one sentence
    share its scales), in training mode and under gradient checkpointing.
    """
    opened = Valve(subject, scales)
    with attached(subject, opened.multiply, opened.turns), opened.replay.watching(subject.model):
        yield opened


class Valve:
    """Scales at work; `scales` may be replaced by another tensor between forwards."""

    def __init__(self, subject: Subject, scales: ScalesLike) -> None:
        self.scales = read_scales(scales, subject.heads)
        self.spans = subject.anatomy.spans
        self.turns = Turns(subject)
        self.replay: Replay[tuple[Site, Tensor]] = Replay()

    def multiply(self, module: nn.Module, attended: Attended) -> Tensor:
        """The part on the seam: scale the head outputs `[batch, query, head, dim]` of a site."""
        # The whole tensor is noted and cut here: a slice made in a reentrant checkpoint's
        # first run, which keeps no graph, would carry no gradient.
        site, scales = self.replay.note(lambda: (self.turns.next(module), self.scales))
        scale, output = scales[..., self.spans[site]].to(attended.output), attended.output
        if scale.dim() == 2:
            rows, examples = output.shape[0], scale.shape[0]
            if rows % examples:
                raise UsageError(
                    f"The valve has scales for {examples} examples, but the model was called on "
                    f"{rows} rows; give as many as the batch has, or one scale a head."
                )
            scale = scale.repeat_interleave(rows // examples, dim=0)[:, None]
        return output * scale[..., None]


# --- Gradients of a loss at what each head gives ------------------------------------------------

# The gradient times what the head gives is dL/dxi_h, the slope of the loss in the head's scale
# (Michel et al., NeurIPS 2019, section 4.1); still apart for every example, position and dimension.

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


# --- Ablate heads: something else stands in the place of what they give ---------------------------

#: What stands in the place of a site's heads, to be broadcast to `[row, query, head, dim]`.
Instead = Callable[[Site, Attended], Tensor]


def zero(site: Site, attended: Attended) -> Tensor:
    """Nothing."""
    return attended.output.new_zeros(())


@contextmanager
def ablated(
    subject: Subject, heads: str | Iterable[str | Head] | Tensor, instead: Instead = zero
) -> Iterator[Ablation]:
    """Ablate heads within the block; the model is exactly as before on any exit.

    `heads` are names (`"enc.0.3,enc.1.2"` or a list), or true and false for each head,
    `[head]` or `[row, head]` in the order of `subject.heads`. `instead` is `zero`, or what
    the room `standins` makes.

    >>> from transformers import BertConfig, BertModel
    >>> config = BertConfig(hidden_size=16, num_hidden_layers=1, num_attention_heads=4,
    ...                     intermediate_size=16, vocab_size=32)
    >>> subject = Subject(BertModel(config).eval())
    >>> ids = torch.tensor([[1, 2, 3]])
    >>> whole = subject.model(ids).last_hidden_state
    >>> with ablated(subject, "enc.0.1,enc.0.2"):
    ...     torch.equal(subject.model(ids).last_hidden_state, whole)
    False
    """
    turns = Turns(subject)
    work = Ablation(chosen_heads(heads, subject.heads), instead, turns.next, subject.anatomy.spans)
    with attached(subject, work, turns):
        yield work


@dataclass(eq=False)
class Ablation:
    """An ablation at work, the part on the seam; `chosen` may be replaced between forwards."""

    chosen: Tensor
    instead: Instead
    #: Tells which site the attention call of a module is.
    site_of: Callable[[nn.Module], Site]
    spans: Mapping[Site, slice]

    def __call__(self, module: nn.Module, attended: Attended) -> Tensor:
        """What the heads give, the chosen ones replaced."""
        site = self.site_of(module)
        chosen = self.chosen[..., self.spans[site]]
        if not chosen.any():
            return attended.output
        return replaced(attended.output, chosen, self.instead(site, attended))


def replaced(output: Tensor, chosen: Tensor, instead: Tensor) -> Tensor:
    """Head outputs `[row, query, head, dim]` with the chosen ones exchanged.

    `chosen` is `[head]`, or `[row, head]`; beams of one row share its choice.
    """
    chosen = chosen.to(output.device)
    if chosen.dim() == 2:
        rows, examples = output.shape[0], chosen.shape[0]
        if rows % examples:
            raise UsageError(
                f"Heads were chosen for {examples} rows, but the model was called on {rows}; "
                "choose for as many as the batch has, or once for all."
            )
        chosen = chosen.repeat_interleave(rows // examples, dim=0)[:, None, :, None]
    else:
        chosen = chosen[None, None, :, None]
    return torch.where(chosen, instead, output)


def chosen_heads(heads: str | Iterable[str | Head] | Tensor, known: list[Head]) -> Tensor:
    """True for every head that was chosen, `[head]` or `[row, head]`.

    >>> chosen_heads("enc.0.1", [Head("enc", 0, 0), Head("enc", 0, 1)])
    tensor([False,  True])
    """
    if isinstance(heads, Tensor):
        if heads.dtype != torch.bool or heads.dim() not in (1, 2) or heads.shape[-1] != len(known):
            raise UsageError(
                f"A tensor of heads is true or false for each of the {len(known)}, [head] or "
                f"[row, head]; this one is {heads.dtype} of shape {tuple(heads.shape)}."
            )
        return heads
    wanted = set(parse_heads(heads))
    check_heads(sorted(wanted), known)
    return torch.tensor([head in wanted for head in known])
