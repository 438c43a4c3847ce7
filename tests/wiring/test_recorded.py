"""Maps of families outside the attention interface: the model's own, whole, or an error."""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from tiny import OUTSIDE, TINY, tiny_inputs
from torch import Tensor

from headcount.errors import ModelError
from headcount.models.dummy_forward import FIELDS, OwnMaps, own_maps
from headcount.models.outside import entering, family_of
from headcount.models.site import Site
from headcount.models.subject import Subject
from headcount.models.switch import attention_configs
from headcount.text.batch import Batch, ready_batch
from headcount.wiring import Needs, Sighting, tap
from headcount.wiring.taps import recorded_maps

FAMILIES = sorted(OUTSIDE)


@pytest.fixture(scope="module", params=FAMILIES)
def subject(request: pytest.FixtureRequest) -> Subject:
    return Subject(OUTSIDE[request.param]())


def batch_of(subject: Subject, **shape: int) -> Batch:
    return ready_batch(tiny_inputs(subject.model, **shape), subject.anatomy.stacks)


def look(subject: Subject, batch: Batch, needs: Needs | None = None) -> list[Sighting]:
    with tap(subject, needs) as watch:
        return watch(batch)


def expected_maps(subject: Subject, batch: Batch) -> dict[str, list[Tensor]]:
    """What a model that was loaded as eager says under `output_attentions`."""
    model = subject.model
    name = type(model).__name__
    twin = OUTSIDE[_row(subject)](model_class=name)
    twin.load_state_dict(model.state_dict())
    twin.config._attn_implementation = "eager"
    # FSMT's decoder looks ahead under its default use_cache=True
    quiet = {"use_cache": False} if model.config.is_encoder_decoder else {}
    with torch.no_grad():
        outputs = twin(**batch.inputs, output_attentions=True, **quiet)
    stacks = subject.anatomy.stacks
    fields = FIELDS if model.config.is_encoder_decoder else {stacks[0]: "attentions"}
    return {stack: list(outputs[field]) for stack, field in fields.items()}


def _row(subject: Subject) -> str:
    kind = type(subject.model)
    return next(name for name in FAMILIES if OUTSIDE[name].keywords["model_class"] == kind.__name__)


def test_maps_are_the_model_s_own_and_rows_sum_to_one(subject: Subject) -> None:
    batch = batch_of(subject, pad=2)
    sightings = look(subject, batch)
    expected = expected_maps(subject, batch)
    assert [sighting.site for sighting in sightings] == list(subject.anatomy.sites)
    for sighting in sightings:
        maps = sighting.maps
        assert maps is not None
        torch.testing.assert_close(maps, expected[sighting.site.stack][sighting.site.layer])
        torch.testing.assert_close(maps.sum(-1), torch.ones(maps.shape[:-1]))
        if sighting.site.causal:
            assert not maps.triu(1).any()


def test_maps_of_a_padded_row_equal_those_of_a_run_of_its_own(subject: Subject) -> None:
    batch = batch_of(subject, batch=2, length=7, pad=3)
    alone = {name: value[1:] for name, value in batch.inputs.items()}
    for name in ("input_ids", "attention_mask"):
        alone[name] = alone[name][:, :4]
    own = look(subject, ready_batch(alone, subject.anatomy.stacks))
    for padded, single in zip(look(subject, batch), own, strict=True):
        assert padded.maps is not None
        assert single.maps is not None
        queries, keys = single.maps.shape[-2:]
        torch.testing.assert_close(
            padded.maps[1:, :, :queries, :keys], single.maps, atol=1e-5, rtol=1e-4
        )
        if padded.site.stack != "dec" or subject.model.config.is_encoder_decoder is False:
            assert not padded.maps[1, :, :queries, keys:].any()


def test_xlnet_s_padding_may_stand_on_the_left() -> None:
    subject = Subject(OUTSIDE["xlnet"]())
    ids = tiny_inputs(subject.model, batch=1, length=4)["input_ids"]
    real = torch.tensor([[0, 0, 0, 1, 1, 1, 1]])
    padded = {"input_ids": torch.cat([torch.zeros(1, 3).long(), ids], 1), "attention_mask": real}
    alone = look(subject, ready_batch({"input_ids": ids}, ["enc"]))
    for single, wide in zip(alone, look(subject, ready_batch(padded, ["enc"])), strict=True):
        torch.testing.assert_close(wide.maps[:, :, 3:, 3:], single.maps, atol=1e-5, rtol=1e-4)
        assert not wide.maps[:, :, 3:, :3].any()


def caught(subject: Subject) -> tuple[list[tuple[Site, Tensor]], OwnMaps]:
    """What entered each output projection, beside the maps of the same forward."""
    model, family = subject.model, family_of(subject.model)
    assert family is not None
    sites = {model.get_submodule(site.module): site for site in subject.anatomy.sites}
    entered: list[tuple[Site, Tensor]] = []

    def note(attention: torch.nn.Module, heads: Tensor) -> Tensor:
        site = sites[attention]
        entered.append((site, heads.unflatten(-1, (site.heads, site.head_dim))))
        return heads

    with entering(sites, family, note):
        found = own_maps(model, tiny_inputs(model))
    return entered, found


@pytest.mark.parametrize("family", [name for name in FAMILIES if name != "xlnet"])
def test_heads_lie_side_by_side_in_the_order_of_the_maps(family: str) -> None:
    """A head's map moves that head's share of the projection's input, and no other's."""
    subject = Subject(OUTSIDE[family]())
    entered, found = caught(subject)
    layers = Counter(site.stack for site, _ in entered)
    assert len(entered) == len(subject.anatomy.sites)
    for site, heads in entered:
        maps = found.of(site.stack, layers[site.stack])[site.layer]
        for index in range(site.heads):
            share = heads[:, :, index].sum()
            (slope,) = torch.autograd.grad(share, maps, retain_graph=True)
            moved = slope.abs().amax((0, 2, 3)) > 0
            assert moved.tolist() == [other == index for other in range(site.heads)], site


def test_xlnet_s_heads_lie_side_by_side_in_the_order_of_its_maps() -> None:
    """XLNet hands out a copy of its maps: so one head is made to ask with another bias."""
    subject = Subject(OUTSIDE["xlnet"]())

    def last_layer() -> tuple[Tensor, Tensor]:
        entered, found = caught(subject)
        return entered[-1][1].detach(), found.of("enc", 2)[-1].detach()

    heads, maps = last_layer()
    with torch.no_grad():
        subject.model.layer[-1].rel_attn.r_w_bias[2] += 1.0
    moved_heads, moved_maps = last_layer()
    only_third = [False, False, True, False]
    assert ((maps - moved_maps).abs().amax((0, 2, 3)) > 0).tolist() == only_third
    assert ((heads - moved_heads).abs().amax((0, 1, 3)) > 0).tolist() == only_third


def test_a_tap_and_listening_leave_the_model_as_it_was(subject: Subject) -> None:
    model = subject.model.train()
    fresh = Subject(model)
    hooks = [name for name in vars(torch.nn.Module()) if name.endswith("_hooks")]

    def state() -> list[Any]:
        modules = list(model.modules())
        return [
            [[list(getattr(module, name)) for name in hooks] for module in modules],
            [sorted(vars(module)) for module in modules],
            [module.training for module in modules],
            [config.to_json_string() for config in attention_configs(model)],
            [config._attn_implementation for config in attention_configs(model)],
        ]

    before, noise = state(), torch.get_rng_state()
    assert fresh.anatomy.sites
    assert torch.equal(torch.get_rng_state(), noise)
    look(fresh, batch_of(fresh))
    with pytest.raises(KeyboardInterrupt), tap(fresh) as watch:
        watch(batch_of(fresh), receive=_interrupt)
    assert state() == before
    model.eval()


def _interrupt(_: Sighting) -> None:
    raise KeyboardInterrupt


def test_hooks_that_transformers_hung_itself_stay() -> None:
    subject = Subject(OUTSIDE["xglm"]())
    inputs = tiny_inputs(subject.model)
    own = subject.model(**inputs, output_attentions=True).attentions
    look(subject, batch_of(subject))
    again = subject.model(**inputs, output_attentions=True).attentions
    assert len(again) == len(own) == 2


def test_falcon_is_really_eager_when_it_gives_its_maps() -> None:
    subject = Subject(OUTSIDE["falcon"]())
    batch = batch_of(subject, pad=2)
    assert subject.model.config._attn_implementation == "sdpa"
    with torch.no_grad():
        naive = subject.model(**batch.inputs, output_attentions=True).attentions
    maps = [sighting.maps for sighting in look(subject, batch)]
    assert not torch.allclose(maps[0], naive[0], atol=1e-2)  # the trap is there
    assert naive[0].triu(1).any()  # it looks ahead
    assert not maps[0].triu(1).any()


def test_a_window_shows_in_the_number_of_visible_keys() -> None:
    subject = Subject(OUTSIDE["gpt_neo"](window_size=3))
    batch = batch_of(subject, length=7, pad=2)
    full, local = look(subject, batch)
    assert full.visible.tolist()[0] == [1, 2, 3, 4, 5, 6, 7]
    assert local.visible.tolist()[0] == [1, 2, 3, 3, 3, 3, 3]
    assert local.visible.tolist()[1][:5] == [1, 2, 3, 3, 3]
    assert local.maps is not None
    assert torch.equal(local.maps[0, 0].gt(0).sum(-1), local.visible[0])


def test_each_map_is_let_go_when_the_next_is_asked_for() -> None:
    subject = Subject(OUTSIDE["bloom"](n_layer=3))
    seen: list[weakref.ref[Tensor]] = []
    with torch.no_grad():
        for _, maps, _ in recorded_maps(subject, batch_of(subject), {"use_cache": False}):
            seen.append(weakref.ref(maps))
            alive = [reference() is not None for reference in seen]
            assert alive == [False] * (len(seen) - 1) + [True]
    assert len(seen) == 3


@contextmanager
def answering(subject: Subject, change: Any) -> Iterator[None]:
    """The model gives other maps than it should."""

    def after(_: Any, __: Any, outputs: Any) -> Any:
        if outputs.get("attentions") is not None:
            outputs["attentions"] = change(outputs["attentions"])
        return outputs

    handle = subject.model.register_forward_hook(after)
    try:
        yield
    finally:
        handle.remove()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda maps: (), "GPTJModel gave 0 attention maps in `attentions` where 2"),
        (lambda maps: maps[:1], "gave 1 attention maps in `attentions` where 2"),
        (lambda maps: (maps[0], None), "gave 1 attention maps in `attentions` where 2"),
        (lambda maps: (*maps, maps[0]), "gave 3 attention maps in `attentions` where 2"),
        (lambda maps: tuple(m[:, 0] for m in maps), "gave 0 attention maps"),
        (
            lambda maps: tuple(m[:, :3] for m in maps),
            r"GPTJForCausalLM gave an attention map of shape \[2, 3, 7, 7\] at dec.0, not "
            r"\[2, 4, 7, 7\] as \[batch, head, query, key\]",
        ),
        (lambda maps: tuple(m[..., :5] for m in maps), r"\[2, 4, 7, 5\] at dec.0"),
    ],
)
def test_missing_or_misshapen_maps_are_an_error(change: Any, message: str) -> None:
    subject = Subject(OUTSIDE["gptj"]())
    batch = batch_of(subject)
    assert subject.anatomy.sites
    with answering(subject, change), pytest.raises(ModelError, match=message):
        look(subject, batch)


def test_a_tap_may_look_at_some_stacks_only() -> None:
    subject = Subject(OUTSIDE["fsmt"]())
    with tap(subject, stacks=["cross"]) as watch:
        assert [s.site.stack for s in watch(batch_of(subject))] == ["cross"] * 3


def test_a_family_inside_the_interface_is_only_run() -> None:
    subject = Subject(TINY["bert"]())
    batch = batch_of(subject)
    ran = []
    handle = subject.model.register_forward_hook(lambda *_: ran.append(1))
    assert list(recorded_maps(subject, batch, {})) == []
    handle.remove()
    assert ran == [1]


@pytest.mark.parametrize("family", ["deberta_v2", "falcon", "xlnet"])
def test_half_precision_gives_statistics_in_single(family: str) -> None:
    subject = Subject(OUTSIDE[family]().to(torch.bfloat16))
    for sighting in look(subject, batch_of(subject), Needs(entropy=True, maps=True)):
        assert sighting.maps is not None
        assert sighting.entropy is not None
        assert sighting.maps.dtype == sighting.entropy.dtype == torch.float32
        assert sighting.entropy.isfinite().all()
