"""Taps: what they show is the model's own attention, only what was asked for, and never kept."""

from __future__ import annotations

import gc
import weakref
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from sightings import batch_of, draw_texts
from tiny import INTERFACE, OUTSIDE, TINY, tiny_inputs
from torch import Tensor

from headcount.errors import ModelError
from headcount.models.site import Site
from headcount.models.subject import Subject
from headcount.models.switch import attention_configs
from headcount.rooms.outside.outside import FIELDS, OwnMaps, entering, family_of, own_maps
from headcount.text.batch import Batch, ready_batch
from headcount.wiring import Needs, Sighting, tap
from headcount.wiring.seam import Attended
from headcount.wiring.taps import recorded_maps

ATTENTIONS = {"enc": "encoder_attentions", "dec": "decoder_attentions", "cross": "cross_attentions"}


def batch_for(subject: Subject, **how: int) -> Batch:
    return ready_batch(tiny_inputs(subject.model, **how), subject.anatomy.stacks)


def own(model: Any, inputs: dict[str, Tensor]) -> dict[str, tuple[Tensor, ...]]:
    """The eager model's attentions by stack."""
    before = model.config._attn_implementation
    model.set_attn_implementation("eager")
    with torch.no_grad():
        outputs = model(**inputs, output_attentions=True)
    model.set_attn_implementation(before)
    if model.config.is_encoder_decoder:
        return {stack: getattr(outputs, name) for stack, name in ATTENTIONS.items()}
    return {"enc": outputs.attentions, "dec": outputs.attentions}


@pytest.mark.parametrize("pad", [0, 3])
@pytest.mark.parametrize(
    "family",
    ["bert", "distilbert", "modernbert", "vit", "gpt2", "llama", "gemma3", "marian", "t5", "bart",
     "whisper"],
)  # fmt: skip
def test_maps_are_those_of_the_eager_model(family: str, pad: int) -> None:
    subject = Subject(INTERFACE[family]())
    batch = batch_for(subject, pad=pad)
    expected = own(subject.model, batch.inputs)
    with tap(subject) as watch:
        sightings = watch(batch)
    sites = [sighting.site for sighting in sightings]
    assert sorted(sites, key=_key) == sorted(subject.anatomy.sites, key=_key)
    for sighting in sightings:
        theirs = expected[sighting.site.stack][sighting.site.layer]
        assert sighting.maps is not None
        torch.testing.assert_close(sighting.maps, theirs, atol=1e-6, rtol=1e-5)


def _key(site: Site) -> tuple[str, int]:
    return site.stack, site.layer


def test_albert_shows_each_call_of_its_one_module() -> None:
    subject = Subject(INTERFACE["albert"]())
    batch = batch_for(subject)
    expected = own(subject.model, batch.inputs)["enc"]
    with tap(subject) as watch:
        shown = [watch(batch), watch(batch)]  # the turn starts afresh with every forward
    for sightings in shown:
        assert [s.site.layer for s in sightings] == [0, 1, 2]
        for sighting in sightings:
            assert sighting.maps is not None
            torch.testing.assert_close(sighting.maps, expected[sighting.site.layer])


def kept_by_keys(sinks_moved_by: float) -> Tensor:
    """What the rows of gpt-oss' first layer sum to, with its learned sinks moved."""
    subject = Subject(INTERFACE["gpt_oss"]())
    with torch.no_grad():
        subject.model.model.layers[0].self_attn.sinks += sinks_moved_by
    with tap(subject) as watch:
        maps = watch(batch_for(subject))[0].maps
    assert maps is not None
    return maps.double().sum(-1)


def test_rows_of_gpt_oss_and_their_sink_sum_to_one() -> None:
    """A sink is one more logit: its odds grow by e^x when it is moved by x, and nothing else."""
    kept, less, all_of_it = (kept_by_keys(moved) for moved in (0.0, 1.0, -1e4))
    assert (kept < 1).all()
    torch.testing.assert_close(all_of_it, torch.ones_like(kept))
    odds = (1 - kept) / kept
    torch.testing.assert_close((1 - less) / less, odds * torch.e, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("family", [*INTERFACE, "deberta", "gptj"])
def test_every_site_is_received_once(family: str) -> None:
    subject = Subject(TINY[family]())
    received: list[Site] = []
    with tap(subject, Needs(entropy=True)) as watch:
        kept = watch(batch_for(subject), receive=lambda sighting: received.append(sighting.site))
    assert kept == []
    assert sorted(received, key=_key) == sorted(subject.anatomy.sites, key=_key)


def test_nothing_is_computed_that_was_not_asked_for() -> None:
    subject = Subject(INTERFACE["bert"]())
    with tap(subject, Needs()) as watch:
        sighting = watch(batch_for(subject))[0]
    assert sighting.maps is None
    assert sighting.entropy is None
    assert sighting.smoothed_entropy is None
    assert (sighting.tops, sighting.masses, sighting.offsets) == ({}, {}, {})


def test_everything_that_was_asked_for_is_there() -> None:
    subject = Subject(INTERFACE["bert"]())
    needs = Needs(entropy=True) | Needs(offsets=frozenset({-1, 0})) | Needs(smoothed=0.1)
    needs |= Needs(tops=frozenset({frozenset(), frozenset({"first"})}), masses=frozenset({"first"}))
    with tap(subject, needs | Needs(maps=True)) as watch:
        sighting = watch(batch_for(subject))[0]
    maps = sighting.maps
    assert maps is not None
    torch.testing.assert_close(sighting.entropy, torch.special.entr(maps).sum(-1))
    assert sighting.smoothed_entropy is not None
    torch.testing.assert_close(sighting.offsets[0], maps.diagonal(dim1=-2, dim2=-1))
    torch.testing.assert_close(sighting.masses["first"], maps[..., 0])
    torch.testing.assert_close(sighting.tops[frozenset()][0], maps.amax(-1))
    torch.testing.assert_close(sighting.tops[frozenset({"first"})][0], maps[..., 1:].amax(-1))
    assert set(sighting.offsets) == {-1, 0}


@pytest.mark.parametrize("stacks", [{"enc"}, {"dec", "cross"}, {"cross"}])
@pytest.mark.parametrize("family", ["marian", "fsmt"])
def test_some_stacks_alone(family: str, stacks: set[str]) -> None:
    subject = Subject(TINY[family]())
    with tap(subject, stacks=stacks) as watch:
        sightings = watch(batch_for(subject))
    assert {s.site.stack for s in sightings} == stacks
    assert len(sightings) == sum(site.stack in stacks for site in subject.anatomy.sites)


def test_no_map_outlives_its_batch() -> None:
    subject = Subject(INTERFACE["bert"]())
    alive: list[weakref.ref[Tensor]] = []
    at_once: list[int] = []

    def receive(sighting: Sighting) -> None:
        assert sighting.maps is not None
        alive.append(weakref.ref(sighting.maps))
        at_once.append(sum(ref() is not None for ref in alive))

    with tap(subject) as watch:
        for seed in range(3):
            watch(batch_for(subject, seed=seed), receive=receive)
            gc.collect()
            assert not any(ref() is not None for ref in alive)
    assert max(at_once) <= 2  # this layer's, and maybe the one before it


def test_a_tap_watches_only_what_runs_through_it() -> None:
    subject = Subject(INTERFACE["bert"]())
    seen: list[Sighting] = []
    batch = batch_for(subject)
    with tap(subject) as watch:
        watch(batch, receive=seen.append)
        subject.model(**batch.inputs)  # a forward of somebody else's, meanwhile
    assert len(seen) == 2


def test_a_site_that_the_forward_goes_past_is_an_error() -> None:
    subject = Subject(INTERFACE["bert"](), name="mine")
    batch = batch_for(subject)
    with tap(subject) as watch:
        subject.model.encoder.layer = subject.model.encoder.layer[:1]
        with pytest.raises(ModelError, match=r"mine ran without its attention at enc\.1 \(encoder"):
            watch(batch)


def test_two_taps_at_once_see_the_same() -> None:
    subject = Subject(INTERFACE["bert"]())
    batch = batch_for(subject)
    with tap(subject) as outer, tap(subject, Needs(entropy=True)) as inner:
        maps, entropies = outer(batch), inner(batch)
    for whole, row in zip(maps, entropies, strict=True):
        assert whole.maps is not None
        torch.testing.assert_close(row.entropy, torch.special.entr(whole.maps).sum(-1))


def test_a_broken_forward_does_not_confuse_the_next() -> None:
    subject = Subject(INTERFACE["albert"]())
    batch = batch_for(subject)
    module = subject.model.get_submodule(subject.anatomy.sites[0].module)
    calls: list[int] = []

    def break_off(*_: object) -> None:
        calls.append(1)
        if len(calls) == 2:  # in the second layer of three
            raise ValueError("broken")

    with tap(subject) as watch:
        before = watch(batch)
        handle = module.register_forward_pre_hook(break_off)
        with pytest.raises(ValueError, match="broken"):
            watch(batch)
        handle.remove()
        after = watch(batch)
    for one, two in zip(before, after, strict=True):
        assert one.site == two.site
        assert torch.equal(one.maps, two.maps)  # type: ignore[arg-type]


def test_half_precision_statistics_are_taken_in_float32() -> None:
    subject = Subject(INTERFACE["bert"]().to(torch.bfloat16))
    with tap(subject, Needs(entropy=True, maps=True)) as watch:
        sighting = watch(batch_for(subject))[0]
    assert sighting.maps is not None
    assert sighting.entropy is not None
    assert (sighting.maps.dtype, sighting.entropy.dtype) == (torch.float32, torch.float32)


@pytest.mark.parametrize("family", ["modernbert", "gemma3", "gpt_neo"])
def test_visible_keys_know_the_sliding_window(family: str) -> None:
    subject = Subject((INTERFACE | OUTSIDE)[family]())
    batch = batch_of(draw_texts(3), "enc" if family == "modernbert" else "dec", extra=2)
    with tap(subject) as watch:
        for sighting in watch(batch):
            assert sighting.maps is not None
            counted = (sighting.maps > 0).any(1).sum(-1)  # by any head
            real = sighting.queries.real
            assert torch.equal(sighting.visible[real], counted[real])


def test_attention_without_weights_is_an_error() -> None:
    site = Subject(INTERFACE["bert"]()).anatomy.sites[0]
    with pytest.raises(ModelError, match=r"The attention at enc\.0 \(encoder\.layer\.0\.attention"):
        Attended(torch.zeros(1)).map_of(site)


# --- Maps of families outside the attention interface -------------------------------------------


FAMILIES = sorted(OUTSIDE)


@pytest.fixture(scope="module", params=FAMILIES)
def subject(request: pytest.FixtureRequest) -> Subject:
    return Subject(OUTSIDE[request.param]())


def batch_of_recorded(subject: Subject, **shape: int) -> Batch:
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
    batch = batch_of_recorded(subject, pad=2)
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
    batch = batch_of_recorded(subject, batch=2, length=7, pad=3)
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
    look(fresh, batch_of_recorded(fresh))
    with pytest.raises(KeyboardInterrupt), tap(fresh) as watch:
        watch(batch_of_recorded(fresh), receive=_interrupt)
    assert state() == before
    model.eval()


def _interrupt(_: Sighting) -> None:
    raise KeyboardInterrupt


def test_hooks_that_transformers_hung_itself_stay() -> None:
    subject = Subject(OUTSIDE["xglm"]())
    inputs = tiny_inputs(subject.model)
    own = subject.model(**inputs, output_attentions=True).attentions
    look(subject, batch_of_recorded(subject))
    again = subject.model(**inputs, output_attentions=True).attentions
    assert len(again) == len(own) == 2


def test_falcon_is_really_eager_when_it_gives_its_maps() -> None:
    subject = Subject(OUTSIDE["falcon"]())
    batch = batch_of_recorded(subject, pad=2)
    assert subject.model.config._attn_implementation == "sdpa"
    with torch.no_grad():
        naive = subject.model(**batch.inputs, output_attentions=True).attentions
    maps = [sighting.maps for sighting in look(subject, batch)]
    assert not torch.allclose(maps[0], naive[0], atol=1e-2)  # the trap is there
    assert naive[0].triu(1).any()  # it looks ahead
    assert not maps[0].triu(1).any()


def test_a_window_shows_in_the_number_of_visible_keys() -> None:
    subject = Subject(OUTSIDE["gpt_neo"](window_size=3))
    batch = batch_of_recorded(subject, length=7, pad=2)
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
        for _, maps, _ in recorded_maps(subject, batch_of_recorded(subject), {"use_cache": False}):
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
    batch = batch_of_recorded(subject)
    assert subject.anatomy.sites
    with answering(subject, change), pytest.raises(ModelError, match=message):
        look(subject, batch)


def test_keys_that_are_no_tokens_are_refused_in_one_sentence() -> None:
    peft = pytest.importorskip("peft")
    prefix = peft.PrefixTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=3)
    subject = Subject(peft.get_peft_model(TINY["gpt2"](), prefix))
    batch = batch_of_recorded(subject)
    (tokens,) = {side.real.shape[1] for side in batch.sides.values()}
    told = (
        f"attends to {tokens + 3} keys at dec.0 where the batch has {tokens} tokens: keys of prefix"
        " or prompt tuning, or of a cache, are no tokens, and only tokens can be read; take the "
        r"model without them \(model.get_base_model\(\)\), or tune it with LoRA\.$"
    )
    for needs in (Needs(maps=True), Needs(entropy=True)):
        with tap(subject, needs) as watch, pytest.raises(ModelError, match=told):
            watch(batch)


def test_a_tap_may_look_at_some_stacks_only() -> None:
    subject = Subject(OUTSIDE["fsmt"]())
    with tap(subject, stacks=["cross"]) as watch:
        assert [s.site.stack for s in watch(batch_of_recorded(subject))] == ["cross"] * 3


def test_a_family_inside_the_interface_is_only_run() -> None:
    subject = Subject(TINY["bert"]())
    batch = batch_of_recorded(subject)
    ran = []
    handle = subject.model.register_forward_hook(lambda *_: ran.append(1))
    assert list(recorded_maps(subject, batch, {})) == []
    handle.remove()
    assert ran == [1]


@pytest.mark.parametrize("family", ["deberta_v2", "falcon", "xlnet"])
def test_half_precision_gives_statistics_in_single(family: str) -> None:
    subject = Subject(OUTSIDE[family]().to(torch.bfloat16))
    for sighting in look(subject, batch_of_recorded(subject), Needs(entropy=True, maps=True)):
        assert sighting.maps is not None
        assert sighting.entropy is not None
        assert sighting.maps.dtype == sighting.entropy.dtype == torch.float32
        assert sighting.entropy.isfinite().all()
