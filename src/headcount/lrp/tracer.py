"""Watches every PyTorch function that a forward calls, and gives those with a rule their step."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torch.overrides import TorchFunctionMode, resolve_name

from headcount.errors import UnsupportedModel
from headcount.lrp.ledger import Ledger
from headcount.lrp.operations import MOVES, OPERATIONS, carries
from headcount.lrp.rule import Rule
from headcount.lrp.step import fan

__all__ = ["Tracer"]


class Tracer(TorchFunctionMode):
    """One forward under way: its rule, its ledger, and what its functions are turned into.

    A tensor carries relevance if it requires a gradient; nothing else in the model does.
    """

    def __init__(self, rule: Rule, ledger: Ledger, name: str) -> None:
        super().__init__()
        self.rule = rule
        self.ledger = ledger
        self._name = name
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
                f"{self._name} calls {resolve_name(func) or func}, which no relevance rule covers; "
                "use another score, e.g. gradient."
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

    def _settled(self, flow: Tensor, total: Tensor) -> Tensor:
        by_row = flow.reshape(self.ledger.rows, -1, flow.shape[-1])
        return self.rule.settle(by_row, total).reshape(flow.shape)
