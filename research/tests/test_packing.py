from __future__ import annotations

import pytest
import torch

from headcount.bundle.packed import unpack_weights
from headcount.errors import ModelError
from research.packing import pack_weights


def test_a_row_is_off_by_half_a_step_at_most() -> None:
    torch.manual_seed(0)
    matrix = torch.randn(40, 30) * torch.logspace(-4, 3, 40)[:, None]
    back = unpack_weights(pack_weights({"w": matrix}))["w"]
    step = matrix.abs().amax(1, keepdim=True) / 127
    # The scale itself is rounded to float16, which can push the largest value by 2**-11 of itself.
    allowed = step / 2 + matrix.abs().amax(1, keepdim=True) * 2**-10
    assert back.dtype == torch.float32
    assert ((back - matrix).abs() <= allowed).all()


def test_packing_what_was_expanded_changes_nothing() -> None:
    torch.manual_seed(1)
    packed = pack_weights({"w": torch.randn(8, 16), "b": torch.randn(8)})
    again = pack_weights(unpack_weights(packed))
    assert again.keys() == packed.keys()
    for name in packed:
        assert torch.equal(again[name], packed[name])


def test_vectors_stay_in_half_precision_and_keep_their_shape() -> None:
    back = unpack_weights(pack_weights({"b": torch.tensor([1.5, -2.25]), "one": torch.tensor(3.0)}))
    assert back["b"].tolist() == [1.5, -2.25]
    assert back["one"].shape == ()


def test_a_row_of_zeros_stays_zero() -> None:
    assert unpack_weights(pack_weights({"w": torch.zeros(2, 3)}))["w"].tolist() == [[0.0] * 3] * 2


def test_tiny_rows_do_not_overflow_when_their_scale_rounds_to_nothing() -> None:
    back = unpack_weights(pack_weights({"w": torch.full((1, 4), 1e-12)}))["w"]
    assert torch.isfinite(back).all()
    assert back.abs().max() <= 1e-6


def test_values_that_are_not_finite_are_refused_by_name() -> None:
    with pytest.raises(ModelError, match=r"^layer\.w holds values that are not finite"):
        pack_weights({"layer.w": torch.tensor([[1.0, float("nan")]])})


def test_huge_vectors_and_matrices_are_refused_by_name() -> None:
    with pytest.raises(ModelError, match=r"^b holds values beyond 6.55e\+04"):
        pack_weights({"b": torch.tensor([1e6])})
    with pytest.raises(ModelError, match=r"^w holds values beyond 8.32e\+06"):
        pack_weights({"w": torch.tensor([[1e9]])})


def test_a_taken_name_is_refused() -> None:
    with pytest.raises(ModelError, match=r"w\.scale cannot be packed"):
        pack_weights({"w.scale": torch.ones(2)})


def test_a_lost_scale_is_named() -> None:
    packed = pack_weights({"w": torch.ones(2, 2)})
    del packed["w.scale"]
    with pytest.raises(ModelError, match=r"hold w but not w\.scale"):
        unpack_weights(packed)
