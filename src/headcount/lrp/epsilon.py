"""The default rules: every part in proportion, norms and attention weights held constant.

What LRP-0 gives for sums, with the choices of docs/decisions for what is no sum: a norm's width
and an attention map are constants of the example, an activation passes relevance on, a product
gives half to each side. A bias keeps its own share, and that share is counted.
"""

from __future__ import annotations

from torch import Tensor

from headcount.lrp.shape import grouped, over, repeated

__all__ = [
    "epsilon_add",
    "epsilon_attention",
    "epsilon_dense",
    "epsilon_layer_norm",
    "epsilon_product",
]


def epsilon_dense(
    x: Tensor, weight: Tensor, bias: Tensor | None, relevance: Tensor, output: Tensor | None = None
) -> tuple[Tensor, Tensor | None]:
    """Relevance of the inputs of y = x W + b, and what the bias keeps, `[..., out]`.

    R_i = x_i sum_j W_ij R_j / y_j; `weight` is `[in, out]`.

    >>> import torch
    >>> x, ones = torch.tensor([1.0, 3.0]), torch.ones(2, 1)
    >>> epsilon_dense(x, ones, torch.tensor([4.0]), torch.tensor([8.0]))
    (tensor([1., 3.]), tensor([4.]))
    """
    if output is None:
        output = x @ weight if bias is None else x @ weight + bias
    share = over(relevance, output)
    return x * (share @ weight.mT), None if bias is None else share * bias


def epsilon_add(a: Tensor, b: Tensor, relevance: Tensor) -> tuple[Tensor, Tensor]:
    """Relevance of the two sides of a sum, in proportion."""
    share = over(relevance, a + b)
    return a * share, b * share


def epsilon_product(relevance: Tensor) -> tuple[Tensor, Tensor]:
    """Relevance of the two sides of a product: half each (gradient times input, shared)."""
    half = relevance / 2
    return half, half


def epsilon_layer_norm(
    x: Tensor,
    gain: Tensor | None,
    bias: Tensor | None,
    relevance: Tensor,
    *,
    norm_eps: float,
    output: Tensor,
) -> tuple[Tensor, Tensor | None]:
    """Relevance through a layer norm whose width is constant, and what the bias keeps.

    y = (x - mean x) gain / width + bias is then a dense layer. Through a root-mean-square norm
    the same thought gives R_x = R_y.
    """
    width = (x.var(dim=-1, keepdim=True, correction=0) + norm_eps).sqrt()
    share = over(relevance, output)
    slope = share / width if gain is None else share * (gain / width)
    inputs = x * (slope - slope.mean(dim=-1, keepdim=True))
    return inputs, None if bias is None else share * bias


def epsilon_attention(
    value: Tensor, weights: Tensor, relevance: Tensor, output: Tensor | None = None
) -> Tensor:
    """Relevance of the values `[..., key head, key, dim]` under constant attention weights."""
    heads = weights.shape[-3]
    v = repeated(value, heads)
    share = over(relevance, weights @ v if output is None else output)
    return grouped(v * (weights.mT @ share), value.shape[-3])
