"""Contribution: gradient times activation through a forward that is made linear, for any block.

Of y = f(x) the part that x is multiplied by is a constant of the example: attention weights, the
width of a norm, the gates of a mixture of experts, and f(x) / x of an activation. What is left is
linear, and a head's part of a prediction is its output times the gradient there. Along sums this is
LRP-0 (Montavon et al. 2019, section 10.2); of a product of two activations each side gets half.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from headcount import models
from headcount.rooms.relevance.propagate import Relevance
from headcount.rooms.relevance.rule import over
from headcount.rooms.relevance.trace import carries
from headcount.wiring import Attended, Turns, attached, hooked

T = TypeVar("T")

#: What these give is a factor: shares, widths, gates, steps of a recurrence.
_FACTORS: frozenset[Any] = frozenset(
    {
        *(functional.softmax, torch.softmax, Tensor.softmax, torch.topk, Tensor.topk),
        *(torch.sigmoid, Tensor.sigmoid, functional.sigmoid, torch.erf, Tensor.erf),
        *(torch.exp, Tensor.exp, functional.softplus, torch.rsqrt, Tensor.rsqrt),
        *(torch.sqrt, Tensor.sqrt, torch.reciprocal, Tensor.reciprocal, Tensor.norm, torch.norm),
        *(torch.var, Tensor.var, torch.std, Tensor.std, torch.linalg.vector_norm),
    }
)
#: Each number by itself: x times a factor f(x) / x.
_ACTIVATIONS: frozenset[Any] = frozenset(
    {
        *(functional.relu, functional.gelu, functional.silu, functional.elu, functional.mish),
        *(functional.leaky_relu, functional.tanh, functional.hardswish, functional.relu6),
        *(torch.relu, torch.tanh, Tensor.relu, Tensor.tanh, torch.square, Tensor.square),
    }
)
_POWERS: frozenset[Any] = frozenset({torch.pow, Tensor.pow, Tensor.__pow__})
_PRODUCTS: frozenset[Any] = frozenset(
    {
        *(torch.mul, Tensor.mul, Tensor.__mul__, Tensor.__rmul__, Tensor.__imul__),
        *(torch.matmul, Tensor.matmul, Tensor.__matmul__, torch.bmm, Tensor.bmm, torch.einsum),
    }
)
_QUOTIENTS: frozenset[Any] = frozenset({torch.div, Tensor.div, Tensor.__truediv__})


class _Straight(TorchFunctionMode):
    """Every function of a forward as a linear one with the same value."""

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run one function; what is no factor, activation, product or norm is left to autograd."""
        kwargs = kwargs or {}
        if not (carries(args) or carries(tuple(kwargs.values()))):
            return func(*args, **kwargs)
        if func in _FACTORS:
            return func(*map(_bare, args), **{key: _bare(one) for key, one in kwargs.items()})
        if func in _ACTIVATIONS:
            return _scaled(args[0], func(_bare(args[0]), *args[1:], **kwargs))
        if func in _POWERS:
            made = func(*map(_bare, args), **kwargs)
            power = args[1] if len(args) > 1 else kwargs.get("exponent")
            up = isinstance(power, int | float) and power > 0
            return _scaled(args[0], made) if up else made
        if func in _QUOTIENTS:
            return func(args[0], *map(_bare, args[1:]), **kwargs)
        if func in _PRODUCTS and sum(map(carries, args)) > 1:
            return _halves(func, args, kwargs)
        if func is functional.layer_norm:
            return _layer_norm(*args, **kwargs)
        if func is functional.rms_norm:
            return _scaled(args[0], func(_bare(args[0]), *args[1:], **kwargs))
        return func(*args, **kwargs)


def _bare(thing: Any) -> Any:
    return thing.detach() if isinstance(thing, Tensor) else thing


def _scaled(x: Tensor, value: Tensor) -> Tensor:
    """The value as x times a constant; where x is 0 nothing comes back."""
    bare = x.detach()
    factor = torch.where(bare == 0, 0, value / bare)
    return _valued(x * factor.to(x.dtype), value)


def _valued(tied: Tensor, value: Tensor) -> Tensor:
    """Exactly the value, with the gradient of what is tied."""
    return value + (tied - tied.detach()).to(value.dtype)


def _halves(func: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> Tensor:
    """Of a product each of the two sides that carry something gets half."""
    places = [place for place, one in enumerate(args) if carries(one)]
    if func is torch.einsum and len(args) == 2:  # operands in one list
        args = (args[0], *args[1])
        places = [place for place, one in enumerate(args) if carries(one)]
    parts = []
    for place in places:
        own = [one if at == place else _bare(one) for at, one in enumerate(args)]
        parts.append(func(*own, **kwargs))
    total = torch.stack(parts).sum(0) if len(parts) > 2 else sum(parts[1:], parts[0])
    return total / len(parts)


def _layer_norm(
    x: Tensor,
    shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Centred, over a constant width."""
    value = functional.layer_norm(x.detach(), shape, weight, bias, eps)
    axes = tuple(range(-len(shape), 0))
    width = (x.detach().var(dim=axes, keepdim=True, correction=0) + eps).sqrt()
    tied = (x - x.mean(dim=axes, keepdim=True)) / width
    return _valued(tied if weight is None else tied * weight, value)


def _fixed_weights(
    function: Callable[..., Any], module: nn.Module, q: Tensor, k: Tensor, *rest: Any, **how: Any
) -> Any:
    """Attention whose weights are constants."""
    return function(module, q.detach(), k.detach(), *rest, **how)


class Straightened:
    """An open block of `straightened`: forwards whose every output is a sum over heads' parts."""

    #: No rule shares anything out: autograd does.
    rule = None
    ledger = None

    def __init__(self, subject: models.Subject) -> None:
        self.subject = subject
        self.turns = Turns(subject)
        self._given: dict[models.Site, Tensor] = {}
        self._wanted = False

    def keep(self, module: nn.Module, attended: Attended) -> Tensor:
        """The part on the seam: keep what the heads gave."""
        site, output = self.turns.next(module), attended.output
        if not self._wanted:
            return output
        if not output.requires_grad:  # the first heads
            output = output.detach().requires_grad_()
        self._given[site] = output
        return output.view_as(output)

    def forward(self, run: Callable[[], T], rows: int) -> tuple[T, None]:
        """Run something that calls the model once on so many rows, and remember how."""
        self._given, self._wanted = {}, True
        try:
            with torch.inference_mode(False), torch.enable_grad(), _Straight():
                return run(), None
        finally:
            self._wanted = False

    def back(self, output: Tensor, starts: Tensor, _: Any = None) -> Relevance:
        """The part of every head in each of the starts `[start, *output]`."""
        given, self._given = self._given, {}
        sites, rows = self.subject.anatomy.sites, len(output)
        found = []
        for number, start in enumerate(starts):
            gradients = torch.autograd.grad(
                output,
                list(given.values()),
                over(start, output.detach()),
                retain_graph=number + 1 < len(starts),
                allow_unused=True,
            )
            by_site = dict(zip(given, gradients, strict=True))
            parts = [_part(given.get(site), by_site.get(site), site, rows) for site in sites]
            found.append(torch.cat([part.to(output.device) for part in parts], dim=-1))
        return Relevance(torch.stack(found), None)


def _part(given: Tensor | None, gradient: Tensor | None, site: models.Site, rows: int) -> Tensor:
    """Output times gradient of each row and head."""
    if given is None or gradient is None:
        return torch.zeros(rows, site.heads)
    kind = torch.promote_types(given.dtype, torch.float32)
    summed = (given.detach() * gradient).sum(dim=(1, 3), dtype=kind)
    return summed.unflatten(0, (rows, -1)).sum(1)


@contextmanager
def straightened(subject: models.Subject) -> Iterator[Straightened]:
    """Within the block forwards can be made linear; the model is exactly as before on any exit."""
    tracing = Straightened(subject)
    activations = [one for one in subject.model.modules() if models.is_activation(one)]

    def after(_: nn.Module, args: Any, output: Any) -> Any:
        tied = bool(args) and carries(args[0]) and isinstance(output, Tensor)
        return _scaled(args[0], output.detach()) if tied else None

    with (
        attached(subject, tracing.keep, tracing.turns, runner=_fixed_weights),
        models.eval_mode(subject.model),
        models.frozen(subject.model),
        hooked(activations, after, after=True),
    ):
        yield tracing
