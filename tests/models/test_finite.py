"""check_finite names the weight that is broken."""

from __future__ import annotations

import pytest
import torch
from tiny import TINY

from headcount.errors import ModelError
from headcount.models.subject import Subject, check_finite, refuse_nan


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


def test_attention_that_is_no_number_is_blamed_on_a_weight_or_on_the_dtype() -> None:
    model = TINY["llama"]().to(torch.bfloat16)
    with pytest.raises(ModelError) as caught:
        refuse_nan(Subject(model, name="mine"), "dec.1")
    assert str(caught.value) == (
        "The attention at dec.1 of mine is not a number, although all weights are; bfloat16 may be "
        "too narrow: use --dtype float32 (dtype='float32')."
    )
    with torch.no_grad():
        model.lm_head.weight[0, 0] = float("nan")
    with pytest.raises(ModelError, match=r"The weight lm_head\.weight of mine holds 1 values of"):
        refuse_nan(Subject(model, name="mine"), "dec.1")
