"""check_finite names the weight that is broken."""

from __future__ import annotations

import pytest
import torch
from tiny import TINY

from headcount.errors import ModelError
from headcount.models.finite import check_finite
from headcount.subject import Subject


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_whole_model_passes(dtype: torch.dtype) -> None:
    check_finite(Subject(TINY["llama"]().to(dtype)))


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_the_first_broken_weight_is_named(value: float) -> None:
    model = TINY["llama"]()
    with torch.no_grad():
        model.model.layers[1].self_attn.k_proj.weight[2, :3] = value
        model.lm_head.weight[0, 0] = value
    said = r"model\.layers\.1\.self_attn\.k_proj\.weight of mine holds 3 values of 512"
    with pytest.raises(ModelError, match=said):
        check_finite(Subject(model, name="mine"))
