"""Taps: what they show is the model's own attention, only what was asked for, and never kept."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest
import torch
from sightings import batch_of, draw_texts
from tiny import INTERFACE, OUTSIDE, TINY, tiny_inputs
from torch import Tensor

from headcount.errors import ModelError
from headcount.models.anatomy import Site
from headcount.models.subject import Subject
from headcount.text.batch import Batch, ready_batch
from headcount.wiring import Needs, Sighting, tap
from headcount.wiring.seam import Attended

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
    subject = Subject(INTERFACE["bert"]())
    with tap(subject) as watch:
        module = subject.model.get_submodule(subject.anatomy.sites[0].module)
        watch._batch = batch_for(subject)
        with pytest.raises(
            ModelError, match=r"The attention at enc\.0 \(encoder\.layer\.0\.attention"
        ):
            watch.seen(module, Attended(torch.zeros(1), None, None))
