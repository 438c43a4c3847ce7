"""A product of one matrix a row with a vector a row, or with many at once."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

__all__ = ["contracted"]


def contracted(matrices: Tensor, vectors: Tensor) -> Tensor:
    """`[row, in, out]` times `[row, out]` is `[row, in]`.

    Under `vmap` over many vectors the matrices, which are large, are read once and not copied.

    >>> contracted(torch.ones(2, 1, 3), torch.ones(2, 3))
    tensor([[3.],
            [3.]])
    """
    made: Tensor = _Contraction.apply(matrices, vectors)
    return made


class _Contraction(torch.autograd.Function):
    @staticmethod
    def forward(matrices: Tensor, vectors: Tensor) -> Tensor:
        return (matrices @ vectors[..., None]).squeeze(-1)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        """Relevance is never differentiated again."""

    @staticmethod
    def vmap(info: Any, in_dims: Any, matrices: Tensor, vectors: Tensor) -> tuple[Tensor, int]:
        if in_dims[0] is not None:
            raise NotImplementedError("the matrices of a contraction are shared by all starts")
        columns = vectors.movedim(in_dims[1], -1)  # [row, out, start]
        return matrices @ columns, 2
