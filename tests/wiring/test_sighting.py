"""Sightings of a model whose layers lie on several devices."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sightings import batch_of, draw_texts
from tiny import TINY, tiny_inputs
from torch import Tensor

from headcount.errors import ModelError
from headcount.models.site import Site
from headcount.models.subject import Subject
from headcount.text.batch import Side
from headcount.wiring import sighting as rows
from headcount.wiring.sighting import Needs, check_ids, look

NEEDS = Needs(
    entropy=True,
    smoothed=0.1,
    tops=frozenset({frozenset({"separator"})}),
    masses=frozenset({"first"}),
)
SITE = Site("enc", 0, heads=2, kv_heads=2, head_dim=4, module="a")


def test_sides_come_to_the_device_of_the_map(monkeypatch: pytest.MonkeyPatch) -> None:
    """The batch lies where the first weight lies, a later layer elsewhere ("meta" stands in)."""
    batch = batch_of(draw_texts(3), "enc")
    length = batch.sides["source"].real.shape[1]
    maps = torch.rand(3, 2, length, length).softmax(-1)
    here = look(SITE, maps, None, batch, NEEDS)
    side, away = batch.sides["source"], batch.to("meta")
    asked: list[torch.device] = []

    def back(_: Side, device: torch.device) -> Side:
        asked.append(device)
        return side

    monkeypatch.setattr(Side, "to", back)
    there = look(SITE, maps, None, away, NEEDS)
    assert set(asked) == {maps.device}
    assert torch.equal(here.masses["first"], there.masses["first"])
    assert torch.equal(here.visible, there.visible)


# --- Ids that a model cannot embed are told before they end in an index error -------------------


@pytest.mark.parametrize("family", ["bert", "gpt2", "t5", "marian", "whisper", "vit", "xlnet"])
def test_ids_of_the_vocabulary_pass(family: str) -> None:
    model = TINY[family]()
    check_ids(Subject(model), tiny_inputs(model))


@pytest.mark.parametrize("name", ["input_ids", "decoder_input_ids"])
@pytest.mark.parametrize("family", ["marian", "t5"])
def test_an_id_too_large_is_named_with_its_side(family: str, name: str) -> None:
    model = TINY[family]()
    inputs = tiny_inputs(model) | {name: torch.tensor([[3, 96], [4, 5]])}
    with pytest.raises(ModelError) as caught:
        check_ids(Subject(model, name="mine"), inputs)
    assert str(caught.value) == (
        f"{name} holds the token id 96 and mine embeds 96, from 0: this is not the tokenizer that "
        "the model was trained with."
    )


def test_no_token_is_no_wrong_token() -> None:
    check_ids(Subject(TINY["bert"]()), {"input_ids": torch.zeros(0, 3).long()})


# --- Row quantities -----------------------------------------------------------------------------


def some_maps(batch: int = 2, heads: int = 3, queries: int = 5, keys: int = 5) -> Tensor:
    noise = torch.Generator().manual_seed(batch + queries * keys)
    return torch.randn(batch, heads, queries, keys, generator=noise).mul(2).softmax(-1)


def test_entropy_is_minus_the_sum_of_p_log_p() -> None:
    maps = some_maps()
    for row, found in zip(maps.reshape(-1, 5), rows.entropy(maps).flatten(), strict=True):
        assert float(found) == pytest.approx(-sum(p * math.log(p) for p in row.tolist()), abs=1e-6)


def test_entropy_of_certainty_is_zero_and_of_uniformity_the_logarithm() -> None:
    maps = torch.stack([torch.eye(4), torch.full((4, 4), 0.25)])
    found = rows.entropy(maps)
    assert torch.equal(found[0], torch.zeros(4))
    torch.testing.assert_close(found[1], torch.full((4,), math.log(4)))


@settings(max_examples=30, deadline=None)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_entropy_is_exact_at_zeros(weights: list[float]) -> None:
    row = torch.tensor(weights, dtype=torch.float64)
    torch.testing.assert_close(rows.entropy(row), torch.special.entr(row).sum(), rtol=0, atol=1e-9)


def test_smoothing_spreads_over_the_real_keys_alone() -> None:
    maps = torch.tensor([[[[1.0, 0.0, 0.0]]]])
    real = torch.tensor([[True, True, False]])
    mixed = [0.9 + 0.05, 0.05]
    expected = -sum(p * math.log(p) for p in mixed)
    assert float(rows.smoothed_entropy(maps, 0.1, real)) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("copied", [True, False])
def test_top_is_the_largest_among_the_allowed(
    copied: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows, "_A_STEP", 0)  # of a small map as of a large one
    maps = some_maps()
    allowed = torch.tensor([[True, False, True, True, False], [False, True, True, True, True]])
    if not copied:  # few keys of many are hidden in the map itself
        maps = torch.cat([maps, torch.zeros(2, 3, 5, 20)], dim=-1)
        allowed = torch.cat([allowed, torch.ones(2, 20, dtype=torch.bool)], dim=-1)
    before = maps.clone()
    hidden = None if copied else [(slice(0, 1), [1, 4]), (slice(1, 2), [0])]
    with rows.left_out(maps, allowed, hidden) as kept:
        assert (kept is maps) != copied
        weight, key = rows.top(kept)
    assert torch.equal(maps, before)
    for place in [(b, h, q) for b in range(2) for h in range(3) for q in range(5)]:
        row = maps[place]
        best = max((k for k in range(5) if allowed[place[0], k]), key=lambda k: float(row[k]))
        assert int(key[place]) == best
        assert float(weight[place]) == float(row[best])


@pytest.mark.parametrize("keys", [5, 40])
def test_the_mass_of_a_class_is_the_sum_of_its_members(keys: int) -> None:
    maps = some_maps(keys=keys)
    places = torch.tensor([[0, 4], [1, 0]])
    there = torch.tensor([[True, True], [True, False]])
    for columns in (None, [(slice(0, 1), [0, 4]), (slice(1, 2), [1])]):
        found = rows.class_mass(maps, places, there, columns)
        torch.testing.assert_close(found[0], maps[0, ..., 0] + maps[0, ..., 4])
        torch.testing.assert_close(found[1], maps[1, ..., 1])
    none = torch.zeros(2, 0, dtype=torch.long)
    assert not rows.class_mass(maps, none, none.bool(), None).any()
    assert not rows.class_mass(maps, none, none.bool(), [(slice(0, 2), [])]).any()


def test_members_beyond_a_map_take_nothing_from_its_last_key() -> None:
    maps = torch.full((1, 1, 1, 4), 0.25)
    places, there = torch.tensor([[3, 4, 5]]), torch.ones(1, 3, dtype=torch.bool)
    assert rows.class_mass(maps, places, there, None).item() == 0.25


def test_keys_are_hidden_in_one_text_of_a_map_that_texts_share() -> None:
    maps = torch.rand(1, 2, 5, 25).expand(2, -1, -1, -1)
    allowed = torch.ones(2, 25, dtype=torch.bool)
    allowed[0, 3] = False
    with rows.left_out(maps, allowed, [(slice(0, 1), [3]), (slice(1, 2), [])]) as kept:
        assert not kept[0, ..., 3].any()
        torch.testing.assert_close(kept[1], maps[1])


@pytest.mark.parametrize("offset", [-7, -2, -1, 0, 1, 3, 9])
@pytest.mark.parametrize(("queries", "keys"), [(5, 5), (4, 6), (6, 4), (1, 1)])
def test_the_weight_at_an_offset_is_zero_where_no_key_is(
    offset: int, queries: int, keys: int
) -> None:
    maps = some_maps(queries=queries, keys=keys)
    found = rows.at_offset(maps, offset)
    assert found.shape == (2, 3, queries)
    for query in range(queries):
        key = query + offset
        expected = maps[..., query, key] if 0 <= key < keys else torch.zeros(2, 3)
        torch.testing.assert_close(found[..., query], expected)


REAL = torch.tensor([[True, True, True, False], [False, True, True, True]])


def test_visible_keys_without_a_mask() -> None:
    assert rows.visible_keys(None, 4, REAL, causal=False).tolist() == [[3] * 4, [3] * 4]
    assert rows.visible_keys(None, 4, REAL, causal=True).tolist() == [[1, 2, 3, 3], [0, 1, 2, 3]]
    assert rows.visible_keys(None, 2, REAL, causal=False).tolist() == [[3, 3], [3, 3]]


def test_visible_keys_are_read_from_a_mask_of_either_kind() -> None:
    allowed = torch.ones(4, 4, dtype=torch.bool).tril() & torch.ones(4, 4, dtype=torch.bool).triu(
        -1
    )
    mask = allowed[None, None] & REAL[:, None, None, :]
    expected = [[1, 2, 2, 1], [0, 1, 2, 2]]
    assert rows.visible_keys(mask, 4, REAL, causal=True).tolist() == expected
    added = torch.zeros(mask.shape).masked_fill(~mask, torch.finfo(torch.float32).min)
    assert rows.visible_keys(added, 4, REAL, causal=True).tolist() == expected
    one_for_all = allowed[None, None]  # one mask for the whole batch
    assert rows.visible_keys(one_for_all, 4, REAL, causal=True).tolist() == expected


def test_uniform_attention_has_the_logarithm_of_what_is_visible() -> None:
    found = rows.uniform_entropy(torch.tensor([1, 2, 0]))
    assert found.tolist() == pytest.approx([0.0, math.log(2), 0.0])
