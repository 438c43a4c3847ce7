"""Norms and activations written out in Python: rules meet them as modules, from outside."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.overrides import TorchFunctionMode, resolve_name

from headcount.errors import UnsupportedModel
from headcount.models import is_activation, is_rms_norm
from headcount.rooms.relevance.rule import (
    Dense,
    Norm,
    RelevanceCounter,
    Rule,
    Share,
    fan,
    step,
    summed_to,
)
from headcount.wiring import hooked

# --- How PyTorch's functions become steps with rules --------------------------------------------

Operation = Callable[..., Tensor]


def carries(thing: Any) -> bool:
    """Whether relevance can flow back through something: a tensor, or one inside a list."""
    if isinstance(thing, Tensor):
        return thing.requires_grad
    if isinstance(thing, list | tuple):
        return any(carries(part) for part in thing)
    return False


def linear(tracer: Tracer, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`functional.linear`, whose weight is `[out, in]`."""
    return _dense(tracer, x, weight.mT, bias)


def matmul(tracer: Tracer, x: Tensor, other: Tensor) -> Tensor:
    """A product with a constant matrix `[in, out]`."""
    if other.dim() != 2:
        raise _refused("a product with a matrix that differs by example")
    return _dense(tracer, x, other, None)


def addmm(tracer: Tracer, bias: Tensor, x: Tensor, weight: Tensor) -> Tensor:
    """GPT-2's dense layer, on tokens of all rows one after another."""
    return _dense(tracer, x, weight, bias)


def _dense(tracer: Tracer, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    if carries([weight, bias]):
        raise _refused("a dense layer whose weights depend on the input")
    inputs, rule, ledger = x.detach(), tracer.rule, tracer.ledger
    output = functional.linear(inputs, weight.mT, bias)
    layer = Dense(inputs, weight, bias, output)
    fanned, total = tracer.fanned(x)

    def flow(told: Tensor) -> Sequence[Tensor | None]:
        return rule.dense(layer, told), ledger.by_row(told.abs())

    return step(output, [fanned, total], flow)


def add(tracer: Tracer, a: Any, b: Any, *, alpha: float = 1) -> Tensor:
    """A residual addition, or a constant shift."""
    if carries(a) and carries(b):
        return _sum_of(tracer, a, b, alpha)
    if carries(a):
        return _shifted(a, alpha * b)
    return _shifted(b, a, alpha)


def subtract(tracer: Tracer, a: Any, b: Any, *, alpha: float = 1) -> Tensor:
    """An addition of the negative."""
    return add(tracer, a, b, alpha=-alpha)


def _sum_of(tracer: Tracer, a: Tensor, b: Tensor, alpha: float) -> Tensor:
    first, second = a.detach(), b.detach() * alpha if alpha != 1 else b.detach()

    def share(told: Tensor) -> Sequence[Tensor]:
        parts = tracer.rule.add(first, second, told)
        return summed_to(parts[0], first.shape), summed_to(parts[1], second.shape)

    return step(first + second, [a, b], share)


def _shifted(x: Tensor, constant: Any, alpha: float = 1) -> Tensor:
    inputs = x.detach() * alpha if alpha != 1 else x.detach()
    return step(inputs + constant, [x], lambda told: (summed_to(told, inputs.shape),))


def multiply(tracer: Tracer, a: Any, b: Any) -> Tensor:
    """A gated product, or a constant factor, through which relevance goes as it is."""
    if not (carries(a) and carries(b)):
        x, factor = (a, b) if carries(a) else (b, a)
        return _scaled(x, factor, x.detach() * factor)
    tracer.rule.check("a product of two activations", tracer.name)
    first, second = a.detach(), b.detach()

    def share(told: Tensor) -> Sequence[Tensor]:
        parts = tracer.rule.product(first, second, told)
        return summed_to(parts[0], first.shape), summed_to(parts[1], second.shape)

    return step(first * second, [a, b], share)


def negate(tracer: Tracer, x: Tensor) -> Tensor:
    """A factor of -1: relevance keeps its sign, where a gradient would change it."""
    return _scaled(x, None, -x.detach())


def divide(tracer: Tracer, x: Any, divisor: Any) -> Tensor:
    """By a constant, through which relevance goes as it is."""
    if carries(divisor):
        raise _refused("a division by a number that depends on the input")
    return _scaled(x, None, x.detach() / divisor)


def _scaled(x: Tensor, factor: Any, value: Tensor) -> Tensor:
    gone = factor == 0 if isinstance(factor, Tensor) and factor.dim() else None

    def share(told: Tensor) -> Sequence[Tensor]:
        kept = told if gone is None else told.masked_fill(gone, 0)
        return (summed_to(kept, x.shape),)

    return step(value, [x], share)


def pooled(pool: Any, tracer: Tracer, x: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
    """A sum over some axes, or a mean, which is a sum for relevance."""
    if dim is None:
        raise _refused("a sum over all examples")
    inputs = x.detach()
    axes = [axis % x.dim() for axis in ([dim] if isinstance(dim, int) else dim)]
    value = pool(inputs, dim=axes, keepdim=True)

    made = step(value, [x], lambda told: (tracer.rule.pool(inputs, axes, told),))
    return made if keepdim else made.squeeze(axes)


def layer_norm(
    tracer: Tracer,
    x: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """`functional.layer_norm` over the last axis."""
    if len(normalized_shape) != 1:
        raise _refused("a layer norm over several axes")
    inputs = x.detach()
    output = functional.layer_norm(inputs, normalized_shape, weight, bias, eps)
    gain = torch.ones_like(inputs[..., :1]) if weight is None else weight
    norm = Norm(inputs, gain, output, bias, eps)
    return step(output, [x], lambda told: (tracer.rule.layer_norm(norm, told),))


def rms_norm(
    tracer: Tracer,
    x: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    eps: float | None = None,
) -> Tensor:
    """`functional.rms_norm` over the last axis."""
    tracer.rule.check("a root-mean-square norm", tracer.name)
    inputs = x.detach()
    output = functional.rms_norm(inputs, normalized_shape, weight, eps)
    gain = torch.ones_like(inputs[..., :1]) if weight is None else weight
    norm = Norm(inputs, gain, output)
    return step(output, [x], lambda told: (tracer.rule.rms_norm(norm, told),))


def _activation(function: Callable[..., Tensor]) -> Operation:
    def passed(tracer: Tracer, x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """Relevance goes through as it is."""
        return step(function(x.detach(), *args, **kwargs), [x], lambda told: (told,))

    return passed


def _refused(what: str) -> UnsupportedModel:
    return UnsupportedModel(
        f"The model has {what}, which no relevance rule covers; use the score contribution."
    )


OPERATIONS: dict[Any, Operation] = {
    functional.linear: linear,
    torch.addmm: addmm,
    **dict.fromkeys((torch.matmul, torch.mm, Tensor.matmul, Tensor.__matmul__), matmul),
    **dict.fromkeys(
        (torch.add, Tensor.add, Tensor.add_, Tensor.__add__, Tensor.__radd__, Tensor.__iadd__), add
    ),
    **dict.fromkeys((torch.sub, Tensor.sub, Tensor.__sub__), subtract),
    **dict.fromkeys(
        (torch.mul, Tensor.mul, Tensor.mul_, Tensor.__mul__, Tensor.__rmul__, Tensor.__imul__),
        multiply,
    ),
    **dict.fromkeys((torch.neg, Tensor.neg, Tensor.__neg__), negate),
    **dict.fromkeys((torch.div, Tensor.div, Tensor.__truediv__), divide),
    **dict.fromkeys((torch.sum, Tensor.sum), partial(pooled, torch.sum)),
    **dict.fromkeys((torch.mean, Tensor.mean), partial(pooled, torch.mean)),
    functional.layer_norm: layer_norm,
    functional.rms_norm: rms_norm,
    **{
        function: _activation(function)
        for function in (
            *(functional.relu, functional.gelu, functional.silu, functional.elu),
            *(functional.leaky_relu, functional.mish, functional.tanh, functional.hardswish),
            *(torch.relu, torch.tanh, Tensor.relu, Tensor.tanh),
        )
    },
}

#: These change places, types or nothing; autograd moves relevance back as it moves gradients.
MOVES: frozenset[Any] = frozenset(
    {
        *(Tensor.view, Tensor.reshape, Tensor.transpose, Tensor.permute, Tensor.contiguous),
        *(Tensor.flatten, Tensor.unflatten, Tensor.squeeze, Tensor.unsqueeze, Tensor.expand),
        *(Tensor.expand_as, Tensor.view_as, Tensor.repeat, Tensor.repeat_interleave),
        *(Tensor.split, Tensor.chunk, Tensor.unbind, Tensor.select, Tensor.narrow, Tensor.swapaxes),
        *(Tensor.movedim, Tensor.index_select, Tensor.gather, Tensor.clone, Tensor.__getitem__),
        *(Tensor.to, Tensor.float, Tensor.double, Tensor.half, Tensor.bfloat16, Tensor.type_as),
        *(Tensor.masked_fill, Tensor.roll, Tensor.requires_grad_, Tensor.type),
        *(torch.reshape, torch.transpose, torch.permute, torch.flatten, torch.squeeze),
        *(torch.unsqueeze, torch.cat, torch.stack, torch.split, torch.chunk, torch.unbind),
        *(torch.gather, torch.index_select, torch.clone, torch.roll),
        *(torch.repeat_interleave, functional.dropout, torch.dropout, functional.pad),
        *(Tensor.T.__get__, Tensor.mT.__get__),  # type: ignore[attr-defined]
    }
)


# --- Watches every PyTorch function that a forward calls ----------------------------------------


class Tracer(TorchFunctionMode):
    """One forward under way: its rule, its ledger, and what its functions are turned into.

    A tensor carries relevance if it requires a gradient; nothing else in the model does.
    """

    def __init__(self, rule: Rule, ledger: RelevanceCounter, name: str) -> None:
        super().__init__()
        self.rule = rule
        self.ledger = ledger
        self.name = name
        self._fans: dict[int, tuple[Tensor, Tensor, Tensor]] = {}

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run one function, as a step where it has a rule."""
        kwargs = kwargs or {}
        if not (carries(args) or carries(tuple(kwargs.values()))):
            return func(*args, **kwargs)
        if func in OPERATIONS:
            return OPERATIONS[func](self, *args, **kwargs)
        made = func(*args, **kwargs)
        if func not in MOVES and carries(made):
            raise UnsupportedModel(
                f"{self.name} calls {resolve_name(func) or func}, which no relevance rule covers; "
                "use the score contribution."
            )
        return made

    def fanned(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """One entrance for all dense layers on the same tensor: fused q, k, v settle as one."""
        if id(x) not in self._fans:  # x is kept beside its id, which therefore stays its own
            self._fans[id(x)] = (x, *fan(x, self.ledger.rows, self._settled))
        return self._fans[id(x)][1:]

    def close_fans(self) -> None:
        """From here on a dense layer on a tensor already seen is another one: a new attention."""
        self._fans.clear()

    def __exit__(self, *how: Any) -> None:
        """What ran leads to the tracer, and a fan back to what ran: a circle nobody collects."""
        self.close_fans()
        super().__exit__(*how)

    def _settled(self, flow: Tensor, total: Tensor) -> Tensor:
        by_row = flow.reshape(self.ledger.rows, -1, flow.shape[-1])
        return self.rule.settle(by_row, total).reshape(flow.shape)


# --- Norms and activations written out in Python ------------------------------------------------


@contextmanager
def met(model: nn.Module, rule: Rule) -> Iterator[None]:
    """Within the block such modules are one step each, whatever they do inside.

    A module runs on a bare copy of its input, then its output is tied to the input by a step.
    """
    modules = [m for m in model.modules() if is_rms_norm(m) or is_activation(m)]
    for norm in filter(is_rms_norm, modules):  # before anything runs
        rule.check("a root-mean-square norm", type(norm).__name__)
    waiting: dict[nn.Module, list[Tensor | None]] = {module: [] for module in modules}

    def before(module: nn.Module, args: Any) -> Any:
        carried = bool(args) and carries(args[0])
        waiting[module].append(args[0] if carried else None)
        return (args[0].detach(), *args[1:]) if carried else None

    def after(module: nn.Module, args: Any, output: Any) -> Any:
        x = waiting[module].pop()
        if x is None or not isinstance(output, Tensor):
            return None
        return step(output, [x], _share(module, rule, x.detach(), output.detach()))

    with hooked(modules, before), hooked(modules, after, after=True, always_call=True):
        yield


def _share(module: nn.Module, rule: Rule, x: Tensor, output: Tensor) -> Share:
    if is_activation(module):
        return lambda told: (told,)
    # What the norm multiplies by, whatever it calls it: its answer to ones.
    with torch.no_grad():
        gain: Tensor = (
            type(module).forward(module, torch.ones_like(x[..., :1, :])).flatten()[-x.shape[-1] :]
        )
        root = x.float().square().mean(dim=-1, keepdim=True).sqrt()
        expected = x.float() / root.clamp_min(1e-12) * gain.float()
    scale = output.abs().max().float()
    if not torch.allclose(expected, output.float(), rtol=0, atol=0.05 * float(scale) + 1e-6):
        raise UnsupportedModel(
            f"{type(module).__name__} is no root-mean-square norm with a gain, and no relevance "
            "rule covers it; use the score contribution."
        )
    norm = Norm(x, gain, output)
    return lambda told: (rule.rms_norm(norm, told),)
