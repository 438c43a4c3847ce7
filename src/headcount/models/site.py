"""One place in a model where heads lie side by side."""

from __future__ import annotations

from dataclasses import dataclass

from headcount.heads import Head

__all__ = ["Site"]


@dataclass(frozen=True)
class Site:
    """One call of one attention module: its stack, layer and shape.

    `module` is the dotted name inside the model and `call` the n-th call of that module in a
    forward. `route` says how heads are reached: through the attention interface, or through
    the input of the output projection (`projection`, families outside the interface).
    `numbers` are the numbers of its heads where some were removed: names are for life.

    >>> [str(head) for head in Site("enc", 0, 2, 2, 8, "attention", numbers=(0, 3)).names]
    ['enc.0.0', 'enc.0.3']
    """

    stack: str
    layer: int
    heads: int
    kv_heads: int
    head_dim: int
    module: str
    call: int = 0
    causal: bool = False
    route: str = "interface"
    numbers: tuple[int, ...] | None = None

    @property
    def indices(self) -> tuple[int, ...]:
        """The number of each head, in the order they lie side by side."""
        return tuple(range(self.heads)) if self.numbers is None else self.numbers

    @property
    def names(self) -> list[Head]:
        """The heads at this site."""
        return [Head(self.stack, self.layer, index) for index in self.indices]
