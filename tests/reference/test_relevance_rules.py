"""Relevance through single layers, as Voita et al.'s programs of 2019 and 2021 give it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from headcount.rooms.relevance.rule import Attending, Dense, Norm
from headcount.rooms.relevance.rules import EPS, AlphaBeta, ZPlus

FIGURES = Path(__file__).parent / "voita_relevance.npz"


@pytest.fixture(scope="module", params=[torch.float32, torch.float64], ids=str)
def figures(request: pytest.FixtureRequest) -> dict[str, Tensor]:
    with np.load(FIGURES) as found:
        return {name: torch.from_numpy(found[name]).to(request.param) for name in found.files}


def assert_close(ours: Tensor, theirs: Tensor, atol: float = 1e-5) -> None:
    np.testing.assert_allclose(ours.numpy(), theirs.numpy(), atol=atol, rtol=0)


@pytest.mark.parametrize("start", ["pos", "signed"])
@pytest.mark.parametrize("bias", ["bias", "nobias"])
def test_a_dense_layer_of_2021(figures: dict[str, Tensor], bias: str, start: str) -> None:
    x, weight, told = figures["lrp/x"], figures["lrp/W"], figures[f"lrp/R_{start}"]
    layer = Dense(x, weight, figures["lrp/b"] if bias == "bias" else None, x)
    ours = AlphaBeta().settle(AlphaBeta().dense(layer, told), told.abs().flatten(1).sum(1))
    assert_close(ours, figures[f"lrp/dense_{bias}_alphabeta_R{start}"])


def test_an_addition_of_2021(figures: dict[str, Tensor]) -> None:
    ours = AlphaBeta().add(*(figures[f"lrp/{name}"] for name in ("x", "y", "R5")))
    assert_close(ours[0], figures["lrp/add_x_alphabeta"])
    assert_close(ours[1], figures["lrp/add_y_alphabeta"])


def test_a_layer_norm_of_2021(figures: dict[str, Tensor]) -> None:
    x, gain, bias, told = (figures[f"lrp/{name}"] for name in ("x", "ln_scale", "ln_bias", "R5"))
    ours = AlphaBeta().layer_norm(Norm(x, gain, x, bias, eps=1e-6), told)
    assert_close(ours, figures["lrp/layernorm_alphabeta"])


def z_plus_dense(x: Tensor, weight: Tensor, relevance: Tensor) -> Tensor:
    """The program of 2019 takes the whole batch for one example."""
    flow = ZPlus().dense(Dense(x, weight, None, x), relevance)
    return ZPlus().settle(flow[None], relevance.sum()[None])[0]


def test_a_dense_layer_and_an_addition_of_2019(figures: dict[str, Tensor]) -> None:
    ours = z_plus_dense(figures["lrp/x"], figures["lrp/W"], figures["lrp/R_pos"])
    assert_close(ours, figures["lrp2019/dense_Rpos"])
    first, second = ZPlus().add(*(figures[f"lrp/{name}"][None] for name in ("x", "y", "R5")))
    assert_close(first[0], figures["lrp2019/add_x"])
    assert_close(second[0], figures["lrp2019/add_y"])


def by_head(tensor: Tensor) -> Tensor:
    """`[batch, token, width]` as `[batch, head, token, dim]` for two heads."""
    return tensor.unflatten(-1, (2, -1)).transpose(1, 2)


def side_by_side(tensor: Tensor) -> Tensor:
    return tensor.transpose(1, 2).flatten(2)


def test_an_attention_layer_of_2019(figures: dict[str, Tensor]) -> None:
    x, fused, out, told = (figures[f"att2019/{name}"] for name in ("X", "Wqkv", "Wo", "R_out"))
    q, k, v = (by_head(part) for part in (x @ fused).chunk(3, dim=-1))
    scale = q.shape[-1] ** -0.5
    # The program adds its eps before the softmax as well.
    weights = (scale * (q + EPS) @ (k + EPS).mT).softmax(-1)
    context = side_by_side((q @ k.mT * scale).softmax(-1) @ v)
    assert_close(context @ out, figures["att2019/out"])
    at_heads = z_plus_dense(context, out, told)
    assert_close(at_heads, figures["att2019/R_context"])
    assert_close(by_head(at_heads).sum(dim=(0, 2, 3)), figures["att2019/head_relevance"])
    call = Attending(*(part[None] for part in (q, k, v, weights, weights @ v)), scale)
    parts = ZPlus().attention(call, by_head(at_heads)[None])
    joined = torch.cat([side_by_side(part[0]) for part in parts if part is not None], dim=-1)
    assert_close(z_plus_dense(x, fused, joined), figures["att2019/R_in"])
