"""The fused kernel, run by Triton's interpreter on the CPU, against the definition in tiles."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from types import ModuleType
from typing import Any
from unittest import mock

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tiny import INTERFACE, tiny_inputs
from torch import Tensor

from headcount.models.subject import Subject
from headcount.rooms.kernel import fused
from headcount.text.batch import Side, ready_batch
from headcount.wiring import Sighting, tap, taps
from headcount.wiring.rows import Scores, tiled
from headcount.wiring.sighting import Asked, Needs, RowSample

triton = pytest.importorskip("triton", reason="Triton is for Linux on x86-64")

NEEDS = Needs(
    entropy=True,
    tops=frozenset({frozenset(), frozenset({"separator"}), frozenset({"special", "first"})}),
    masses=frozenset({"first", "separator", "punctuation"}),
    offsets=frozenset({-2, -1, 0, 1}),
)
SMALL = {64: (32, 16, 4, 1), 128: (32, 16, 4, 1), 256: (16, 16, 4, 1)}
#: By dtype: entropy, then weights and masses.
TOLERANCE = {torch.float32: (5e-6, 5e-6), torch.float16: (1e-5, 1e-3)}


@pytest.fixture
def kernel() -> Iterator[ModuleType]:
    """The kernel as the interpreter runs it, with tiles that short texts fill."""
    if not triton.knobs.runtime.interpret:
        pytest.skip("Triton's interpreter is off where there is a GPU")
    module = importlib.import_module("headcount.rooms.kernel.kernel")
    with (
        mock.patch.multiple(module, _TILES=SMALL, _EXACT_TILES=SMALL),
        mock.patch.object(fused, "available", return_value=True),
    ):
        yield module


def side(rows: int, tokens: int, padding: int, left: bool, noise: torch.Generator) -> Side:
    real = torch.ones(rows, tokens, dtype=torch.bool)
    if padding:
        real[-1, slice(0, padding) if left else slice(tokens - padding, tokens)] = False
    ends = (torch.rand(rows, tokens, generator=noise) < 0.15) & real
    marks = (torch.rand(rows, tokens, generator=noise) < 0.3) & real
    return Side(real.long(), real, ends, ends, marks, marks, [[]] * rows)


@st.composite
def cases(draw: Any) -> dict[str, Any]:
    heads = draw(st.sampled_from([(1, 1), (4, 4), (4, 2), (6, 1)]))
    return {
        "dtype": draw(st.sampled_from(sorted(TOLERANCE, key=str))),
        "heads": heads,
        "dim": draw(st.sampled_from([8, 24, 64, 80, 128, 256])),
        "queries": draw(st.integers(2, 40)),
        "keys": draw(st.integers(2, 40)),
        "shape": draw(st.sampled_from(["whole", "causal", "cross"])),
        "mask": draw(st.sampled_from([None, "bool", "added", "window"])),
        "bias": draw(st.booleans()),
        "left": draw(st.booleans()),
        "rows": draw(st.sampled_from([None, 5])),
        "seed": draw(st.integers(0, 9)),
    }


def drawn(case: dict[str, Any]) -> tuple[Scores, Asked]:
    """Random queries and keys with the mask and the classes of a case."""
    noise = torch.Generator().manual_seed(case["seed"])
    (heads, shared), dtype, texts = case["heads"], case["dtype"], 2
    queries = case["queries"]
    keys = case["keys"] if case["shape"] == "cross" else queries
    padding = min(keys - 1, 3) if case["mask"] else 0
    key_side = side(texts, keys, padding, case["left"], noise)
    query_side = key_side
    if case["shape"] == "cross":
        query_side = side(texts, queries, 0, False, noise)

    def numbers(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=noise).to(dtype)

    query = 2 * numbers(texts, heads, queries, case["dim"])
    key = numbers(texts, shared, keys, case["dim"])
    causal, mask = case["shape"] == "causal", None
    if case["mask"]:
        seen = key_side.real[:, None, None, :].expand(texts, 1, queries, keys)
        if causal:
            seen = seen & torch.ones(queries, keys).tril().bool()
        if case["mask"] == "window":
            seen = seen & torch.ones(queries, keys).triu(-4).bool()
        mask = seen
        if case["mask"] == "added":
            lowest = torch.finfo(dtype).min
            mask = torch.zeros(seen.shape, dtype=dtype).masked_fill(~seen, lowest)
    bias = numbers(1, heads, queries, keys) if case["bias"] else None
    scores = Scores(query, key, case["dim"] ** -0.5, mask, causal and mask is None, bias)
    sample = None
    if case["rows"] is not None:
        sample = RowSample(case["rows"], case["seed"], ((0, 0), (1, 0)))
    return scores, Asked.of(NEEDS, query_side, key_side, sample)


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(cases())
def test_the_kernel_gives_what_the_definition_gives(
    kernel: ModuleType, case: dict[str, Any]
) -> None:
    scores, asked = drawn(case)
    assert fused.serves(scores, asked)
    found, expected = fused.row_quantities(scores, asked), tiled(scores, asked)[1]
    of_entropy, of_weights = TOLERANCE[case["dtype"]]
    # A row that sees no key (padding on the left) has no meaning.
    real = asked.asking.real[:, None].expand_as(expected["entropy"])
    if scores.mask is not None:
        seen = scores.mask if scores.mask.dtype == torch.bool else scores.mask > -1e4
        some = seen.any(-1)[:, 0]
        some = some if asked.places is None else some.gather(1, asked.places)
        real = real & some[:, None]

    def close(ours: Tensor, theirs: Tensor, within: float, what: str) -> None:
        difference = torch.where(real, (ours - theirs).abs(), 0).max()
        assert float(difference) <= within, what

    close(found["entropy"], expected["entropy"], of_entropy, "entropy")
    for name, mass in expected["masses"].items():
        close(found["masses"][name], mass, of_weights, f"mass on {name}")
    for offset, weight in expected["offsets"].items():
        close(found["offsets"][offset], weight, of_weights, f"weight at {offset}")
    for left_out, (weight, key) in expected["tops"].items():
        ours, where = found["tops"][left_out]
        close(ours, weight, of_weights, f"largest weight without {sorted(left_out)}")
        assert bool((~real | (where == key) | ((ours - weight).abs() < 1e-5)).all())


@pytest.mark.parametrize("family", ["bert", "llama", "marian", "gemma3", "t5"])
def test_a_tap_reads_all_layers_in_few_launches(kernel: ModuleType, family: str) -> None:
    subject = Subject(INTERFACE[family]())
    batch = ready_batch(tiny_inputs(subject.model, pad=3), subject.anatomy.stacks)
    with tap(subject, NEEDS) as watch:
        expected = {one.site: one for one in watch(batch)}
    alone, together = list[Sighting](), list[Sighting]()
    launched = mock.patch.object(kernel, "launched", wraps=kernel.launched)
    with mock.patch.object(taps, "_SMALL_MAP", -1), launched as launches:
        with tap(subject, NEEDS) as watch:
            watch(batch, receive=alone.append, together=together.append)
        assert watch.paths == {"fused": len(expected)}
    biased = len(expected) if family == "t5" else 0  # a bias is a layer's own
    assert launches.call_count <= max(biased, 3)
    for found in (alone, [one for group in together for one in group.by_site()]):
        assert {one.site for one in found} == set(expected)
        for one in found:
            real, theirs = one.queries.real[:, None], expected[one.site]
            parts = [(one.entropy, theirs.entropy)]
            parts += [(one.offsets[name], theirs.offsets[name]) for name in theirs.offsets]
            parts += [(one.masses[name], theirs.masses[name]) for name in theirs.masses]
            for mine, other in parts:
                assert mine is not None
                assert other is not None
                assert float(torch.where(real, (mine - other).abs(), 0).max()) < 1e-5


def test_what_the_kernel_has_no_room_for_is_left_to_tiles(kernel: ModuleType) -> None:
    case = {
        "dtype": torch.float32, "heads": (4, 4), "dim": 8, "queries": 6, "keys": 6,
        "shape": "whole", "mask": None, "bias": False, "left": False, "rows": None, "seed": 0,
    }  # fmt: skip
    scores, asked = drawn(case)
    assert fused.serves(scores, asked)
    for needs in (
        Needs(smoothed=0.1),
        Needs(maps=True),
        Needs(offsets=frozenset(range(9))),
        Needs(tops=frozenset(frozenset({name}) for name in ("first", "stops", "special", "x"))),
    ):
        if any("x" in one for one in needs.tops):
            needs = Needs(
                tops=needs.tops - {frozenset({"x"})} | {frozenset(), frozenset({"separator"})}
            )
        more = Asked.of(needs, asked.queries, asked.keys)
        assert not fused.serves(scores, more)
    wide = torch.zeros(1, 1, 4, 512)
    assert not fused.serves(Scores(wide, wide, 1.0), asked)


def test_without_a_gpu_or_without_triton_tiles_serve() -> None:
    assert not fused.available(torch.device("cpu"))
    with mock.patch("importlib.util.find_spec", return_value=None):
        assert not fused.available(torch.device("cuda"))
