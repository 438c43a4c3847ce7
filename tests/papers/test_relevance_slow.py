"""Relevance again, from its definitions: every contribution written out in explicit matrices.

A two-layer BERT is run by hand in float64; each rule then goes back through it step by step, with
Jacobians from autograd and sums in einsum. What `importance.lrp` does in one backward must agree.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from tiny import TINY, tiny_inputs
from torch import Tensor
from torch.autograd.functional import jacobian

from headcount.models.subject import Subject
from headcount.rooms.relevance import rules
from headcount.rooms.relevance.contribution import straightened
from headcount.rooms.relevance.propagate import traced
from headcount.rooms.relevance.rule import Attending
from headcount.rooms.relevance.rules import rule_named

HEADS = 4


# --- contributions: z[i, j] of input i to output j, from the exact Jacobian ----------------------


def contributions(function: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """x_i J_ij of a function of one flat vector, `[in, out]`."""
    return x[:, None] * jacobian(function, x).T


def plain(z: Tensor, output: Tensor, told: Tensor) -> Tensor:
    return (z * (told / output)).sum(dim=1)


def by_parts(z: Tensor, told: Tensor, eps: float = 1e-5) -> Tensor:
    above, below = z.clamp_min(0), z.clamp_max(0)
    shares = 0.5 * above / (above.sum(0) + eps) + 0.5 * below / (below.sum(0) - eps)
    return (shares * told).sum(dim=1)


def scaled(flow: Tensor, total: Tensor) -> Tensor:
    return flow * total / flow.abs().sum()


# --- one class a rule, on flat vectors of one example --------------------------------------------


class Slow:
    """The steps of a post-norm encoder layer; tokens are the first axis."""

    def dense(self, x: Tensor, weight: Tensor, bias: Tensor, told: Tensor) -> Tensor:
        raise NotImplementedError

    def add(self, a: Tensor, b: Tensor, told: Tensor) -> tuple[Tensor, Tensor]:
        raise NotImplementedError

    def norm(self, x: Tensor, module: Any, told: Tensor) -> Tensor:
        return told

    def attention(self, q: Tensor, k: Tensor, v: Tensor, told: Tensor) -> Tensor:
        raise NotImplementedError


class SlowContribution(Slow):
    def dense(self, x: Tensor, weight: Tensor, bias: Tensor, told: Tensor) -> Tensor:
        z = x[:, :, None] * weight
        return (z * (told / (z.sum(1) + bias))[:, None]).sum(2)

    def add(self, a: Tensor, b: Tensor, told: Tensor) -> tuple[Tensor, Tensor]:
        return a * told / (a + b), b * told / (a + b)

    def norm(self, x: Tensor, module: Any, told: Tensor) -> Tensor:
        found = []
        for row, given in zip(x, told, strict=True):
            width = (row.var(correction=0) + module.eps).sqrt()

            def straight(r: Tensor, width: Tensor = width) -> Tensor:
                return (r - r.mean()) / width * module.weight + module.bias

            found.append(plain(contributions(straight, row), straight(row), given))
        return torch.stack(found)

    def attention(self, q: Tensor, k: Tensor, v: Tensor, told: Tensor) -> Tensor:
        weights = attention_weights(q, k)

        def values(flat: Tensor) -> Tensor:
            return joined(weights @ apart(flat.view_as(v))).flatten()

        flow = plain(contributions(values, v.flatten()), values(v.flatten()), told.flatten())
        return torch.cat([torch.zeros_like(q), torch.zeros_like(k), flow.view_as(v)], dim=1)


class SlowZPlus(Slow):
    eps = 1e-7

    def dense(self, x: Tensor, weight: Tensor, bias: Tensor, told: Tensor) -> Tensor:
        z = (x + self.eps)[:, :, None] * weight.clamp_min(self.eps)
        return scaled((z * (told / z.sum(1))[:, None]).sum(2).abs(), told.sum())

    def add(self, a: Tensor, b: Tensor, told: Tensor) -> tuple[Tensor, Tensor]:
        a, b = a + self.eps, b + self.eps
        both = torch.cat([(a * told / (a + b)).abs(), (b * told / (a + b)).abs()])
        first, second = scaled(both, told.sum()).chunk(2)
        return first, second

    def attention(self, q: Tensor, k: Tensor, v: Tensor, told: Tensor) -> Tensor:
        packed = torch.cat([q, k, v], dim=1) + self.eps

        def core(flat: Tensor) -> Tensor:
            return attended(*flat.view_as(packed).chunk(3, dim=1)).flatten()

        flat = packed.flatten()
        flow = plain(contributions(core, flat), core(flat) + self.eps, told.flatten())
        return scaled(flow.abs(), told.sum()).view_as(packed)


class SlowDing(SlowZPlus):
    def dense(self, x: Tensor, weight: Tensor, bias: Tensor, told: Tensor) -> Tensor:
        z = x[:, :, None] * weight
        return scaled((z * (told / z.sum(1))[:, None]).sum(2).abs(), told.sum())

    def add(self, a: Tensor, b: Tensor, told: Tensor) -> tuple[Tensor, Tensor]:
        both = torch.cat([(a * told / (a + b)).abs(), (b * told / (a + b)).abs()])
        first, second = scaled(both, told.sum()).chunk(2)
        return first, second

    def attention(self, q: Tensor, k: Tensor, v: Tensor, told: Tensor) -> Tensor:
        weights, output = attention_weights(q, k), apart(attended(q, k, v))
        told, q4, k4, v4 = apart(told), apart(q), apart(k), apart(v)
        rq, rk, rv = torch.zeros_like(q4), torch.zeros_like(k4), torch.zeros_like(v4)
        heads, tokens, width = q4.shape
        for h in range(heads):
            for i in range(tokens):
                for j in range(tokens):
                    a, score = weights[h, i, j], (q4[h, i] * k4[h, j]).sum()
                    at_score = torch.zeros(())
                    for d in range(width):
                        term = a * v4[h, j, d] / output[h, i, d] * told[h, i, d]
                        rv[h, j, d] += term * v4[h, j, d] / (a + v4[h, j, d])
                        at_score = at_score + term * a / (a + v4[h, j, d])
                    for d in range(width):
                        x, y = q4[h, i, d], k4[h, j, d]
                        rq[h, i, d] += x * y / score * at_score * x / (x + y)
                        rk[h, j, d] += x * y / score * at_score * y / (x + y)
        flow = torch.cat([joined(part) for part in (rq, rk, rv)], dim=1)
        return scaled(flow.abs(), told.sum())


class SlowAlphaBeta(Slow):
    eps = 1e-5

    def dense(self, x: Tensor, weight: Tensor, bias: Tensor, told: Tensor) -> Tensor:
        z = x[:, :, None] * weight + bias / len(weight)
        flow = torch.stack([by_parts(one, given) for one, given in zip(z, told, strict=True)])
        return self.kept(flow, told)

    def kept(self, flow: Tensor, told: Tensor) -> Tensor:
        total = told.abs().sum()
        return scaled(flow, total) * total / (total + self.eps)

    def joint(self, flow: Tensor, told: Tensor) -> Tensor:
        return flow * told.abs().sum() / (flow.abs().sum() + self.eps)

    def add(self, a: Tensor, b: Tensor, told: Tensor) -> tuple[Tensor, Tensor]:
        z = torch.stack([a.flatten(), b.flatten()])  # two inputs of every output
        above, below = z.clamp_min(0), z.clamp_max(0)
        shares = 0.5 * above / (above.sum(0) + self.eps) + 0.5 * below / (below.sum(0) - self.eps)
        flow = self.joint(shares * told.flatten(), told)
        return flow[0].view_as(a), flow[1].view_as(b)

    def norm(self, x: Tensor, module: Any, told: Tensor) -> Tensor:
        found = []
        for row, given in zip(x, told, strict=True):
            centred, n = row - row.mean(), len(row)
            square = centred.square().mean()
            matrix = (torch.eye(n) - 1 / n) / square.sqrt()
            matrix = matrix - centred[:, None] * centred / n / (square + module.eps) ** 1.5
            z = row[:, None] * matrix * module.weight + module.bias / n
            found.append(by_parts(z, given))
        return self.kept(torch.stack(found), told)

    def attention(self, q: Tensor, k: Tensor, v: Tensor, told: Tensor) -> Tensor:
        packed = torch.cat([q, k, v], dim=1)

        def core(flat: Tensor) -> Tensor:
            return attended(*flat.view_as(packed).chunk(3, dim=1)).flatten()

        flow = by_parts(contributions(core, packed.flatten()), told.flatten())
        return self.joint(flow, told).view_as(packed)


def apart(x: Tensor) -> Tensor:
    """`[token, width]` as `[head, token, dim]`."""
    return x.unflatten(-1, (HEADS, -1)).transpose(0, 1)


def joined(x: Tensor) -> Tensor:
    return x.transpose(0, 1).flatten(1)


def attention_weights(q: Tensor, k: Tensor) -> Tensor:
    q, k = apart(q), apart(k)
    return (q @ k.mT * q.shape[-1] ** -0.5).softmax(dim=-1)


def attended(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return joined(attention_weights(q, k) @ apart(v))


# --- the model by hand ---------------------------------------------------------------------------


def run(layer: Any, x: Tensor) -> dict[str, Tensor]:
    """Everything that one layer computes."""
    own = layer.attention.self
    at = {"x": x, "q": own.query(x), "k": own.key(x), "v": own.value(x)}
    at["heads"] = attended(at["q"], at["k"], at["v"])
    at["mixed"] = layer.attention.output.dense(at["heads"])
    at["sum"] = at["mixed"] + x
    at["middle"] = layer.attention.output.LayerNorm(at["sum"])
    at["wide"] = layer.intermediate.dense(at["middle"])
    at["active"] = torch.nn.functional.gelu(at["wide"])
    at["narrow"] = layer.output.dense(at["active"])
    at["total"] = at["narrow"] + at["middle"]
    at["y"] = layer.output.LayerNorm(at["total"])
    return at


def back(layer: Any, at: dict[str, Tensor], slow: Slow, told: Tensor) -> tuple[Tensor, Tensor]:
    """Relevance of what the heads gave, and of what entered the layer."""

    def dense(module: Any, x: Tensor, given: Tensor) -> Tensor:
        return slow.dense(x, module.weight.T, module.bias, given)

    told = slow.norm(at["total"], layer.output.LayerNorm, told)
    narrow, middle = slow.add(at["narrow"], at["middle"], told)
    active = dense(layer.output.dense, at["active"], narrow)
    middle = middle + dense(layer.intermediate.dense, at["middle"], active)
    told = slow.norm(at["sum"], layer.attention.output.LayerNorm, middle)
    mixed, entered = slow.add(at["mixed"], at["x"], told)
    heads = dense(layer.attention.output.dense, at["heads"], mixed)
    packed = slow.attention(at["q"], at["k"], at["v"], heads)
    own = layer.attention.self
    fused = [own.query, own.key, own.value]
    weight = torch.cat([module.weight.T for module in fused], dim=1)
    bias = torch.cat([module.bias for module in fused])
    if isinstance(slow, SlowContribution):  # no relevance at queries and keys, so no denominators
        return heads, entered + dense(own.value, at["x"], packed.chunk(3, dim=1)[2])
    return heads, entered + slow.dense(at["x"], weight, bias, packed)


SLOW = {
    "contribution": SlowContribution,
    "ding": SlowDing,
    "z+": SlowZPlus,
    "alpha-beta": SlowAlphaBeta,
}


@pytest.fixture
def _double() -> Any:
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.mark.usefixtures("_double")
@pytest.mark.parametrize("name", SLOW)
def test_two_layers_by_hand(name: str) -> None:
    model = TINY["bert"]().double()
    inputs = tiny_inputs(model, batch=1, length=4)
    slow = SLOW[name]()
    with torch.no_grad():
        states = [run(layer, x) for layer, x in walk(model, inputs)]
    told = torch.zeros_like(states[-1]["y"])
    told[1, 7] = 1.0
    expected = {}
    for number in reversed(range(2)):
        layer = model.encoder.layer[number].requires_grad_(False)
        heads, told = back(layer, states[number], slow, told)
        expected[number] = apart(heads).sum(dim=(1, 2))
    rule = None if name == "contribution" else rule_named(name)
    subject = Subject(model)
    with straightened(subject) if rule is None else traced(subject, rule) as tracing:
        output, ledger = tracing.forward(lambda: model(**inputs).last_hidden_state, 1)
        starts = torch.zeros(1, *output.shape)
        starts[0, 0, 1, 7] = 1.0
        found = tracing.back(output, starts, ledger)
    ours = found.heads[0, 0].view(2, HEADS)
    torch.testing.assert_close(ours, torch.stack([expected[0], expected[1]]), rtol=1e-6, atol=1e-9)
    if rule is not None:
        torch.testing.assert_close(found.flow.through[0, 0, 0], told.sum(), rtol=1e-6, atol=1e-9)


def walk(model: Any, inputs: dict[str, Tensor]) -> Any:
    x = model.embeddings(inputs["input_ids"])[0]
    for layer in model.encoder.layer:
        yield layer, x
        x = run(layer, x)["y"]


@pytest.mark.usefixtures("_double")
def test_attention_with_shared_keys_by_its_whole_jacobian() -> None:
    """The 2021 rule through softmax(q k) v: factors against the matrix that they stand for."""
    noise = torch.Generator().manual_seed(1)
    q, told = (torch.randn(1, 4, 3, 2, generator=noise) for _ in range(2))
    k, v = (torch.randn(1, 2, 3, 2, generator=noise) for _ in range(2))
    sizes = [q.numel(), k.numel(), v.numel()]

    def core(flat: Tensor) -> Tensor:
        a, b, c = flat.split(sizes)
        keys, values = (x.view_as(k).repeat_interleave(2, dim=1) for x in (b, c))
        return ((a.view_as(q) @ keys.mT * 2**-0.5).softmax(-1) @ values).flatten()

    # A key head's contribution is counted once for each query head that reads it.
    flow = by_parts(
        contributions(core, torch.cat([x.flatten() for x in (q, k, v)])), told.flatten()
    )
    flow = flow * told.abs().sum() / (flow.abs().sum() + 1e-5)
    keys, values = (x.repeat_interleave(2, dim=1) for x in (k, v))
    weights = (q @ keys.mT * 2**-0.5).softmax(-1)
    call = Attending(q, k, v, weights, weights @ values, 2**-0.5)
    parts = rules.rule_named("alpha-beta").attention(call, told)
    torch.testing.assert_close(torch.cat([part.flatten() for part in parts]), flow)
