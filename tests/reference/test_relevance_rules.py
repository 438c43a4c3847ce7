"""Relevance through single layers, as Voita et al.'s programs of 2019 and 2021 give it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from headcount.importance.lrp import rules

FIGURES = Path(__file__).parent / "voita_relevance.npz"


@pytest.fixture(scope="module", params=[torch.float32, torch.float64], ids=str)
def figures(request: pytest.FixtureRequest) -> dict[str, Tensor]:
    with np.load(FIGURES) as found:
        return {name: torch.from_numpy(found[name]).to(request.param) for name in found.files}


def assert_close(ours: Tensor, theirs: Tensor, atol: float = 1e-5) -> None:
    np.testing.assert_allclose(ours.numpy(), theirs.numpy(), atol=atol, rtol=0)


@pytest.mark.parametrize("start", ["pos", "signed"])
@pytest.mark.parametrize("bias", ["bias", "nobias"])
@pytest.mark.parametrize("kind", ["alphabeta", "simple"])
def test_a_dense_layer_of_2021(
    figures: dict[str, Tensor], kind: str, bias: str, start: str
) -> None:
    ours = rules.alpha_beta_dense(
        figures["lrp/x"],
        figures["lrp/W"],
        figures["lrp/b"] if bias == "bias" else None,
        figures[f"lrp/R_{start}"],
        alpha_beta=kind == "alphabeta",
    )
    assert_close(ours, figures[f"lrp/dense_{bias}_{kind}_R{start}"])


@pytest.mark.parametrize("kind", ["alphabeta", "simple"])
def test_an_addition_of_2021(figures: dict[str, Tensor], kind: str) -> None:
    x, y, told = (figures[f"lrp/{name}"] for name in ("x", "y", "R5"))
    ours = rules.alpha_beta_add(x, y, told, alpha_beta=kind == "alphabeta")
    assert_close(ours[0], figures[f"lrp/add_x_{kind}"])
    assert_close(ours[1], figures[f"lrp/add_y_{kind}"])


# The plain rule divides by J x, which is zero but for rounding: theirs and ours round apart.
@pytest.mark.parametrize(("kind", "atol"), [("alphabeta", 1e-5), ("simple", 2e-5)])
def test_a_layer_norm_of_2021(figures: dict[str, Tensor], kind: str, atol: float) -> None:
    names = ("x", "ln_scale", "ln_bias", "R5")
    ours = rules.alpha_beta_layer_norm(
        *(figures[f"lrp/{name}"] for name in names), alpha_beta=kind == "alphabeta"
    )
    assert_close(ours, figures[f"lrp/layernorm_{kind}"], atol)


def test_a_dense_layer_and_an_addition_of_2019(figures: dict[str, Tensor]) -> None:
    x, y, told = (figures[f"lrp/{name}"] for name in ("x", "y", "R5"))
    ours = rules.z_plus_dense(x, figures["lrp/W"], figures["lrp/R_pos"])
    assert_close(ours, figures["lrp2019/dense_Rpos"])
    first, second = rules.z_plus_add(x, y, told)
    assert_close(first, figures["lrp2019/add_x"])
    assert_close(second, figures["lrp2019/add_y"])


def by_head(tensor: Tensor) -> Tensor:
    """`[batch, token, width]` as `[batch, head, token, dim]` for two heads."""
    return tensor.unflatten(-1, (2, -1)).transpose(1, 2)


def side_by_side(tensor: Tensor) -> Tensor:
    return tensor.transpose(1, 2).flatten(2)


def test_an_attention_layer_of_2019(figures: dict[str, Tensor]) -> None:
    x, fused, out, told = (figures[f"att2019/{name}"] for name in ("X", "Wqkv", "Wo", "R_out"))
    q, k, v = (by_head(part) for part in (x @ fused).chunk(3, dim=-1))
    context = side_by_side((q @ k.mT * q.shape[-1] ** -0.5).softmax(-1) @ v)
    assert_close(context @ out, figures["att2019/out"])
    at_heads = rules.z_plus_dense(context, out, told)
    assert_close(at_heads, figures["att2019/R_context"])
    assert_close(by_head(at_heads).sum(dim=(0, 2, 3)), figures["att2019/head_relevance"])
    parts = rules.z_plus_attention(q, k, v, by_head(at_heads))
    joined = torch.cat([side_by_side(part) for part in parts], dim=-1)
    assert_close(rules.z_plus_dense(x, fused, joined), figures["att2019/R_in"])
