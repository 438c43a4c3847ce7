"""What enters an output projection can be seen and replaced, and nothing stays behind."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from headcount.models.outside import Family, entering


class Linear(nn.Module):
    """Projects in a module, which also takes something else."""

    def __init__(self) -> None:
        super().__init__()
        self.output = nn.ModuleDict({"dense": nn.Bilinear(6, 1, 2, bias=False)})

    def forward(self, heads: Tensor, other: Tensor) -> Tensor:
        return self.output["dense"](heads, other)


class Method(nn.Module):
    """Projects in a method, as XLNet does: `[query, batch, head, dim]`."""

    def project(self, residual: Tensor, heads: Tensor, residual_too: bool = True) -> Tensor:
        out = heads.sum((-2, -1))
        return out + residual if residual_too else out

    def forward(self, heads: Tensor) -> Tensor:
        return self.project(torch.ones(heads.shape[:2]), heads, residual_too=True)


def test_a_module_s_first_input_is_seen_and_replaced() -> None:
    layer, heads, other = Linear(), torch.randn(2, 3, 6), torch.randn(2, 3, 1)
    seen: list[Any] = []

    def show(attention: nn.Module, shown: Tensor) -> Tensor:
        seen.append((attention, shown))
        return shown * 2

    with entering([layer], Family("Linear", "output.dense"), show):
        doubled = layer(heads, other)
    assert seen[0][0] is layer
    assert seen[0][1] is heads
    assert torch.equal(doubled, layer(2 * heads, other))


def test_turned_axes_are_turned_to_batch_first_and_back() -> None:
    layer, heads, other = Linear(), torch.randn(3, 2, 6), torch.randn(3, 2, 1)
    scale = torch.tensor([0.0, 1.0])[:, None, None]  # the first of two examples is shut

    def show(_: nn.Module, shown: Tensor) -> Tensor:
        assert shown.shape == (2, 3, 6)
        return shown * scale

    with entering([layer], Family("Linear", "output.dense", time_first=True), show):
        out = layer(heads, other)
    assert not out[:, 0].any()
    assert torch.equal(out[:, 1], layer(heads, other)[:, 1])


def test_a_method_s_heads_are_packed_and_unpacked() -> None:
    layer, heads = Method(), torch.randn(3, 2, 4, 5)
    family = Family("Method", "project", time_first=True, method=True)

    def show(attention: nn.Module, shown: Tensor) -> Tensor:
        assert attention is layer
        assert torch.equal(shown, heads.transpose(0, 1).flatten(2))
        return shown * 0

    plain = layer(heads)
    with entering([layer], family, show):
        assert torch.equal(layer(heads), torch.ones(3, 2))
    assert torch.equal(layer(heads), plain)


@pytest.mark.parametrize(
    ("layer", "family"),
    [
        (Linear(), Family("Linear", "output.dense")),
        (Method(), Family("Method", "project", time_first=True, method=True)),
    ],
    ids=["module", "method"],
)
def test_nothing_stays_behind_also_when_nested_and_broken(layer: nn.Module, family: Family) -> None:
    def state() -> list[Any]:
        return [(sorted(vars(m)), list(m._forward_pre_hooks)) for m in layer.modules()]

    def nested_and_broken() -> None:
        with entering([layer], family, lambda _, heads: heads):
            inner = state()
            with entering([layer], family, lambda _, heads: heads):
                pass
            assert state() == inner != before
            raise KeyError

    before = state()
    with pytest.raises(KeyError):
        nested_and_broken()
    assert state() == before


def test_a_path_that_is_not_there_leaves_nothing_on_the_others() -> None:
    good, bad = Linear(), nn.Module()
    with (
        pytest.raises(AttributeError),
        entering([good, bad], Family("Linear", "output.dense"), lambda _, heads: heads),
    ):
        pass
    assert not good.output["dense"]._forward_pre_hooks
