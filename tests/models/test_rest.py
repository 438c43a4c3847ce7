"""A model at rest, and as it was afterwards."""

from __future__ import annotations

import pytest
import torch
from tiny import TINY
from transformers import PreTrainedModel

from headcount.models.guards import at_rest


def draw_and_break(model: PreTrainedModel) -> None:
    with at_rest(model):
        assert not any(module.training for module in model.modules())
        torch.rand(3)
        raise KeyError


def test_modes_and_randomness_are_put_back_also_after_an_error() -> None:
    model = TINY["bert"]().train()
    model.pooler.eval()  # a mode per module, not one for all
    modes = [module.training for module in model.modules()]
    noise = torch.get_rng_state()
    with pytest.raises(KeyError):
        draw_and_break(model)
    assert [module.training for module in model.modules()] == modes
    assert torch.equal(torch.get_rng_state(), noise)
