"""What a whole run gave on the way, kept as long as its batch is worked on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves, tree_map
from transformers.pytorch_utils import Conv1D

from headcount.models.site import Site
from headcount.wiring.ablate import Instead, replaced, zero
from headcount.wiring.course import Passage
from headcount.wiring.seam import Attended

__all__ = ["RecordedRun", "copied"]


class RecordedRun:
    """Outputs of one run by block, attention and projection; copies of them for several rows."""

    def __init__(self, instead: Instead) -> None:
        self.instead = instead
        self.rows = 0
        self.encoder: Any = None
        self._blocks: dict[int, Any] = {}
        self._attentions: dict[Site, Any] = {}
        self._projections: dict[Site, Tensor] = {}
        self._heads: dict[Site, Tensor] = {}
        #: What would stand in the place of the heads; nothing for zero.
        self._instead: dict[Site, Tensor] = {}
        self._encoded: dict[int, Any] = {}
        self._crossed: dict[tuple[nn.Module, int], Tensor] = {}
        self._seals: list[tuple[Tensor, int]] = []

    @property
    def intact(self) -> bool:
        """Whether the model has left alone what it gave: some work in place."""
        return all(tensor._version == version for tensor, version in self._seals)

    def keep_block(self, step: int, output: Any) -> None:
        """Keep what a block gave."""
        self._blocks[step] = output
        self._seal(output)

    def keep_attention(self, site: Site, output: Any) -> None:
        """Keep what an attention module gave."""
        self._attentions[site] = output
        self._seal(output)

    def keep_projection(self, site: Site, output: Tensor) -> None:
        """Keep what an output projection gave."""
        self._projections[site] = output
        self._seal(output)

    def _seal(self, output: Any) -> None:
        tensors = [part for part in tree_leaves(output) if isinstance(part, Tensor)]
        self._seals += [(tensor, tensor._version) for tensor in tensors]

    def hear(self, site: Site, attended: Attended) -> None:
        """Keep what the heads of a site gave, and what would stand in their place."""
        self.rows = attended.output.shape[0]
        self._heads[site] = attended.output
        self._seal(attended.output)
        if self.instead is not zero:
            self._instead[site] = self.instead(site, attended)

    def block(self, step: int, copies: int) -> Any:
        """What a block gave."""
        return copied(self._blocks[step], self.rows, copies)

    def attention(self, site: Site, copies: int) -> Any:
        """What an attention module gave."""
        return copied(self._attentions[site], self.rows, copies)

    def encoded(self, copies: int) -> Any:
        """What the encoder gave; always the same object for as many copies."""
        if copies not in self._encoded:
            self._encoded[copies] = copied(self.encoder, self.rows, copies)
        return self._encoded[copies]

    def crossed(self, module: nn.Module, copies: int, compute: Callable[[], Tensor]) -> Tensor:
        """A projection of the encoder's output, computed once."""
        key = (module, copies)
        if key not in self._crossed:
            self._crossed[key] = compute()
        return self._crossed[key]

    def projected_without(
        self, passage: Passage, chosen: Tensor, project: Callable[[Tensor], Tensor]
    ) -> Tensor:
        """What the projection gives when heads are ablated, `[ablation, head]`, one below another.

        One head's share is taken from the sum where the projection is a plain matrix; in all
        other cases the projection runs again.
        """
        site = passage.site
        matrix = _matrix(passage.projection)
        if matrix is not None and bool((chosen.sum(dim=1) == 1).all()):
            return self._less_one(site, chosen.int().argmax(dim=1).tolist(), matrix)
        heads = copied(self._heads[site], self.rows, len(chosen))
        instead = self._instead.get(site)
        other = heads.new_zeros(()) if instead is None else copied(instead, self.rows, len(chosen))
        rows = chosen.repeat_interleave(self.rows, dim=0)
        return project(replaced(heads, rows, other).flatten(-2))

    def _less_one(self, site: Site, heads: list[int], matrix: Tensor) -> Tensor:
        whole = self._projections[site]
        made = whole.new_empty((len(heads), *whole.shape))
        for place, head in enumerate(heads):
            share = self._heads[site][:, :, head]
            if site in self._instead:
                other = self._instead[site]
                share = share - (other[..., head, :] if other.dim() > 1 else other)
            columns = slice(head * share.shape[-1], (head + 1) * share.shape[-1])
            torch.addmm(
                whole.flatten(0, -2),
                share.flatten(0, -2),
                matrix[columns],
                alpha=-1,
                out=made[place].flatten(0, -2),
            )
        return made.flatten(0, 1)


def copied(output: Any, rows: int, copies: int) -> Any:
    """An output for as many copies of a batch, one below the other; the same object for one."""
    if copies == 1:
        return output

    def copy(part: Any) -> Any:
        if not isinstance(part, Tensor) or part.dim() < 2 or part.shape[0] != rows:
            return part
        return part.unsqueeze(0).expand(copies, *part.shape).flatten(0, 1)

    return tree_map(copy, output)


def _matrix(projection: nn.Module | None) -> Tensor | None:
    """The weight of a plain matrix, `[in, out]`; nothing for anything else, such as an adapter."""
    if type(projection) is nn.Linear:
        return projection.weight.t()
    if isinstance(projection, Conv1D) and type(projection) is Conv1D:
        weight: Tensor = projection.weight
        return weight
    return None
