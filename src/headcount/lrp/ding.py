"""The rules of the paper's text: every part in proportion to what it adds.

Ding et al. 2017, as Voita et al. 2019, appendix A, give them: w(u -> v) = W_uv u / sum W_u'v u' for
sums, w(u -> v) = u / sum u' for products; activations are passed over. Denominators may be near
zero and of any sign, so single relevances can be large; their sum is kept.
"""

from __future__ import annotations

from torch import Tensor

from headcount.lrp.shape import grouped, over, repeated

__all__ = ["ding_add", "ding_attention", "ding_dense", "ding_product"]


def ding_dense(x: Tensor, weight: Tensor, relevance: Tensor) -> Tensor:
    """Relevance of the inputs of y = x W + b; `weight` is `[in, out]`, the bias is no neuron.

    >>> import torch
    >>> ding_dense(torch.tensor([1.0, 3.0]), torch.tensor([[1.0], [-1.0]]), torch.tensor([2.0]))
    tensor([-1.,  3.])
    """
    return x * (over(relevance, x @ weight) @ weight.mT)


def ding_add(a: Tensor, b: Tensor, relevance: Tensor) -> tuple[Tensor, Tensor]:
    """Relevance of the two sides of a sum, in proportion."""
    share = over(relevance, a + b)
    return a * share, b * share


def ding_product(a: Tensor, b: Tensor, relevance: Tensor) -> tuple[Tensor, Tensor]:
    """Relevance of the two sides of a product: also u / sum u', as the paper has it."""
    return ding_add(a, b, relevance)


def ding_attention(
    query: Tensor, key: Tensor, value: Tensor, weights: Tensor, relevance: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Relevance of queries, keys and values of softmax(q k) v, `[..., head, token, dim]`.

    A sum of products twice, weights times values and queries times keys; the softmax is an
    activation and passes relevance on.
    """
    heads = query.shape[-3]
    k, v = repeated(key, heads), repeated(value, heads)
    to_weights, to_values = _products(weights[..., None], v[..., None, :, :], relevance, dim=-2)
    # Relevance of a weight is that of its score, [..., query, key], a sum over dimensions.
    scores = to_weights.sum(dim=-1)
    to_queries, to_keys = _products(query[..., :, None, :], k[..., None, :, :], scores, dim=-1)
    return (
        to_queries.sum(dim=-2),
        grouped(to_keys.sum(dim=-3), key.shape[-3]),
        grouped(to_values.sum(dim=-3), value.shape[-3]),
    )


def _products(a: Tensor, b: Tensor, relevance: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    """Relevance of both factors of a sum of products over one axis."""
    terms = a * b
    shares = terms * over(relevance, terms.sum(dim=dim)).unsqueeze(dim)
    return ding_product(a, b, shares)
