"""Row statistics: every path gives what the map gives, whatever the tile or the family."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import Any
from unittest import mock

import pytest
import torch
from sightings import batch_of, draw_texts
from tiny import INTERFACE, tiny_inputs
from torch import Tensor
from transformers.models.bert import modeling_bert

from headcount.models import quiet_arguments
from headcount.models.subject import Subject
from headcount.text.batch import Batch, bare_side, ready_batch
from headcount.wiring import Needs, Sighting, rows, tap, taps
from headcount.wiring.rows import Call, Scores, agrees, attended, tiled
from headcount.wiring.sighting import Asked, RowSample

NEEDS = Needs(
    entropy=True,
    tops=frozenset({frozenset(), frozenset({"separator"}), frozenset({"special"})}),
    masses=frozenset({"first", "separator", "punctuation"}),
    offsets=frozenset({-1, 0, 1, 3}),
)


@contextmanager
def without_maps(cells: int = 64) -> Iterator[None]:
    """No map is small enough to be computed whole, and tiles have few cells."""
    with mock.patch.object(taps, "_SMALL_MAP", -1), mock.patch.dict(rows.TILE, {"cpu": cells}):
        yield


def by_maps() -> Any:
    """No path but the family's own function is trusted."""
    return mock.patch.object(taps, "_agrees", return_value=False)


def seen(subject: Subject, batch: Batch, needs: Needs = NEEDS, **how: Any) -> list[Sighting]:
    with tap(subject, needs, **how) as watch:
        found = watch(batch)
    seen.paths = dict(watch.paths)  # type: ignore[attr-defined]
    return found


def quantities(sighting: Sighting) -> dict[str, Tensor]:
    """The numbers of the rows that mean something, by name; keys of largest weights left out."""
    real = sighting.queries.real[:, None]
    found = {f"mass {name}": mass for name, mass in sighting.masses.items()}
    found |= {f"offset {offset}": part for offset, part in sighting.offsets.items()}
    found |= {f"top without {sorted(name)}": one[0] for name, one in sighting.tops.items()}
    for name in ("entropy", "smoothed_entropy"):
        if getattr(sighting, name) is not None:
            found[name] = getattr(sighting, name)
    return {name: torch.where(real, values, 0) for name, values in found.items()}


def assert_same(first: Sighting, second: Sighting, atol: float = 2e-6) -> None:
    assert first.site == second.site
    torch.testing.assert_close(first.visible, second.visible)
    ours, theirs = quantities(first), quantities(second)
    assert ours.keys() == theirs.keys()
    for name, values in ours.items():
        torch.testing.assert_close(values, theirs[name], atol=atol, rtol=1e-5, msg=name)


def shaped(subject: Subject, family: str, pad: int = 3) -> Batch:
    return ready_batch(tiny_inputs(subject.model, pad=pad), subject.anatomy.stacks)


@pytest.mark.parametrize("family", sorted(INTERFACE))
def test_tiles_give_what_the_map_gives(family: str) -> None:
    subject = Subject(INTERFACE[family]())
    batch = shaped(subject, family)
    with by_maps():
        expected = seen(subject, batch)
    assert set(seen.paths) == {"map"}  # type: ignore[attr-defined]
    from_scores = seen(subject, batch)
    assert set(seen.paths) <= {"scores", "map"}  # type: ignore[attr-defined]
    with without_maps():
        found = seen(subject, batch)
    assert set(seen.paths) <= {"tiled", "map in tiles"}  # type: ignore[attr-defined]
    for other, *ours in zip(expected, from_scores, found, strict=True):
        for one in ours:
            assert_same(one, other)


@pytest.mark.parametrize("family", sorted(INTERFACE))
def test_the_model_answers_as_it_does_by_itself_on_every_path(family: str) -> None:
    subject = Subject(INTERFACE[family]())
    batch = shaped(subject, family, pad=0)
    with torch.no_grad():
        plain = subject.model.eval()(**batch.inputs, **quiet_arguments(subject.model))[0]
    answers: list[Tensor] = []
    with subject.model.register_forward_hook(lambda _, __, said: answers.append(said[0])):
        for way in (by_maps, nullcontext, without_maps):
            with way():
                seen(subject, batch)
            torch.testing.assert_close(answers[-1], plain, atol=2e-5, rtol=1e-4)


@pytest.mark.parametrize("kind", ["bert", "llama", "marian"])
@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("cells", [None, 1, 300, 10**6])
def test_neither_tile_nor_padding_shows(kind: str, left: bool, cells: int | None) -> None:
    if left and kind != "llama":
        pytest.skip("only decoders are padded on the left")
    subject = Subject(INTERFACE[kind]())
    batch = batch_of(draw_texts(4), {"bert": "enc", "llama": "dec"}.get(kind, "enc-dec"), left)
    with by_maps():
        expected = seen(subject, batch)
    with nullcontext() if cells is None else without_maps(cells):
        found = seen(subject, batch)
    path = "scores" if cells is None else "tiled"
    assert seen.paths == {path: len(subject.anatomy.sites)}  # type: ignore[attr-defined]
    for one, other in zip(found, expected, strict=True):
        assert_same(one, other)
        for name, (weight, key) in one.tops.items():
            # The key may differ only between weights that are equal but for rounding.
            theirs = torch.where(one.queries.real[:, None], other.tops[name][1], 0)
            ours = torch.where(one.queries.real[:, None], key, 0)
            assert bool(((ours == theirs) | (weight < 1e-6)).all())


def test_an_eager_model_is_read_in_tiles_by_its_own_function() -> None:
    subject = Subject(INTERFACE["bert"]())
    batch = shaped(subject, "bert")
    expected = seen(subject, batch)
    subject.model.set_attn_implementation("eager")
    with torch.no_grad():
        plain = subject.model(**batch.inputs)[0]
    with mock.patch.object(taps, "_SMALL_MAP", -1), mock.patch.dict(rows.TILE, {"cpu": 64}):
        with tap(subject, NEEDS) as watch:
            found = watch(batch)
        assert set(watch.paths) == {"map in tiles"}
        with tap(subject, NEEDS) as watch, torch.no_grad():
            again = subject.model(**batch.inputs)[0]
    torch.testing.assert_close(plain, again)
    for one, other in zip(found, expected, strict=True):
        assert_same(one, other)


def test_clark_s_smoothing_is_served_in_tiles() -> None:
    subject, needs = Subject(INTERFACE["bert"]()), Needs(smoothed=0.0001)
    batch = shaped(subject, "bert")
    expected = seen(subject, batch, needs)
    with without_maps():
        for one, other in zip(seen(subject, batch, needs), expected, strict=True):
            assert_same(one, other)


def steeper_scores() -> Any:
    """BERT's own function with scores twice as large: a family that does as it likes."""
    own = modeling_bert.eager_attention_forward

    def steeper(module: Any, query: Tensor, *others: Any, **more: Any) -> Any:
        return own(module, query * 2, *others, **more)

    return mock.patch.object(modeling_bert, "eager_attention_forward", steeper)


def test_a_family_with_scores_of_its_own_is_not_trusted() -> None:
    """An eager function that does more than its arguments tell is seen, and used."""
    subject = Subject(INTERFACE["bert"]())
    batch = shaped(subject, "bert")
    with steeper_scores():
        expected = seen(subject, batch)
        with without_maps():
            found = seen(subject, batch)
        assert set(seen.paths) == {"map in tiles"}  # type: ignore[attr-defined]
    for one, other in zip(found, expected, strict=True):
        assert_same(one, other)


def test_a_text_of_one_token_earns_a_family_no_trust() -> None:
    """Its query gives all weight to one key, whatever is done to scores."""
    subject = Subject(INTERFACE["bert"]())
    one = ready_batch({"input_ids": torch.tensor([[7]])}, {"enc"})
    ids, mask = torch.tensor([[7, 0, 0, 0], [5, 6, 7, 8]]), torch.tensor([[1, 0, 0, 0], [1] * 4])
    mixed = ready_batch({"input_ids": ids, "attention_mask": mask}, {"enc"})
    with steeper_scores():
        for batch in (one, mixed):
            seen(subject, batch)
            assert set(seen.paths) == {"map"}  # type: ignore[attr-defined]
    plain = Subject(INTERFACE["bert"]())
    for batch in (one, mixed):
        seen(plain, batch)
    assert set(seen.paths) == {"scores"}  # type: ignore[attr-defined]


def test_rows_that_see_no_key_are_alike_on_every_path() -> None:
    query, key, value = (torch.randn(1, 2, 6, 4) for _ in range(3))
    mask = torch.ones(1, 1, 6, 6, dtype=torch.bool)
    mask[..., 2, :] = False
    scores = Scores(query, key, 0.5, mask)
    side = bare_side(torch.ones(1, 6, dtype=torch.long), torch.ones(1, 6, dtype=torch.bool))
    _, found = tiled(scores, Asked.of(Needs(entropy=True), side, side))
    torch.testing.assert_close(found["entropy"], attended(scores, value)[2])
    torch.testing.assert_close(found["entropy"][0, :, 2].exp(), torch.full((2,), 6.0))


def test_fewer_keys_than_causal_queries() -> None:
    query, key = torch.randn(1, 2, 6, 4), torch.randn(1, 2, 3, 4)
    with mock.patch.dict(rows.TILE, {"cpu": 12}):
        sides = (bare_side(torch.ones(1, n).long(), torch.ones(1, n).bool()) for n in (6, 3))
        _, found = tiled(Scores(query, key, 0.5, None, True), Asked.of(Needs(entropy=True), *sides))
    assert found["entropy"].shape == (1, 2, 6)
    torch.testing.assert_close(found["entropy"][..., 0], torch.zeros(1, 2))


@pytest.mark.parametrize("family", ["t5", "llama", "bert"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_read_by_one_path_at_any_size(family: str, dtype: torch.dtype) -> None:
    """From scores in float32: a map in half precision would round each size in its own way."""
    subject = Subject(INTERFACE[family]().to(dtype))
    batch = shaped(subject, family)
    small = seen(subject, batch)
    assert set(seen.paths) == {"tiled"}  # type: ignore[attr-defined]
    with without_maps():
        large = seen(subject, batch)
    for one, other in zip(small, large, strict=True):
        assert_same(one, other)


@pytest.mark.parametrize("kind", ["enc", "dec"])
def test_sites_shown_together_are_the_sites_shown_one_by_one(kind: str) -> None:
    subject = Subject(INTERFACE["bert" if kind == "enc" else "llama"]())
    batch, alone, together = batch_of(draw_texts(4), kind), [], []
    with tap(subject, NEEDS) as watch:
        watch(batch, receive=alone.append, together=together.append)
    assert len(together) == 1
    assert together[0].site.heads == sum(site.heads for site in subject.anatomy.sites)
    for one, other in zip(together[0].by_site(), alone, strict=True):
        assert_same(one, other, atol=0)


def shown(together: list[Sighting]) -> list[tuple[int, int]]:
    return [(one.site.heads, len(one.batch)) for one in together]


@pytest.mark.parametrize("rows", [None, 3])
@pytest.mark.parametrize("kind", ["enc", "dec", "enc-dec"])
def test_batches_that_are_alike_are_shown_as_one(kind: str, rows: int | None) -> None:
    subject = Subject(INTERFACE[{"enc": "bert", "dec": "llama", "enc-dec": "marian"}[kind]]())
    texts = draw_texts(6)
    batches = [batch_of([*texts[start : start + 2], texts[0]], kind) for start in (0, 2, 4)]
    widths = [max(side.real.shape[1] for side in batch.sides.values()) for batch in batches]
    batches = [
        batch_of([*texts[start : start + 2], texts[0]], kind, extra=max(widths) - width)
        for start, width in zip((0, 2, 4), widths, strict=True)
    ]
    if kind == "enc-dec":
        batches = [batches[0], replace(batches[0], index=[7, 8, 9]), batches[0]]
    batches = [replace(batch, window=[0] * len(batch)) for batch in batches]
    alone: list[Sighting] = []
    together: list[Sighting] = []
    with tap(subject, NEEDS, rows=rows) as watch:
        for batch in batches:
            watch(batch, receive=alone.append, together=together.append)
        assert not together  # they wait for more
    assert [one.batch.index for one in together] == [
        [number for batch in batches for number in batch.index]
    ] * len(together)
    for group in together:
        for one in group.by_site():
            parts = [other for other in alone if other.site == one.site]
            for name, values in quantities(one).items():
                whole = torch.cat([quantities(part)[name] for part in parts])
                torch.testing.assert_close(values, whole, atol=0, rtol=0)
            for side in ("queries", "keys"):
                for flag in ("ids", "real", "separator", "punctuation"):
                    whole = torch.cat([getattr(getattr(part, side), flag) for part in parts])
                    assert torch.equal(getattr(getattr(one, side), flag), whole)
            if rows is not None:
                assert one.weights is not None
                assert torch.equal(one.weights, torch.cat([part.weights for part in parts]))


def test_batches_wait_for_their_like_and_no_longer() -> None:
    subject = Subject(INTERFACE["bert"]())
    heads = sum(site.heads for site in subject.anatomy.sites)
    texts = draw_texts(4)
    short, long = batch_of(texts[:2], "enc"), batch_of(texts[:2], "enc", extra=3)
    together: list[Sighting] = []
    receive, other = together.append, list[Sighting]()
    with tap(subject, NEEDS) as watch:
        watch(short, together=receive)
        watch(long, together=receive)
        assert shown(together) == [(heads, 2)]  # of another length
        watch.flush()
        assert shown(together) == [(heads, 2)] * 2
        watch(short, together=receive)
        watch(short, together=other.append)
        assert shown(together) == [(heads, 2)] * 3  # for another listener
        rows = short.sides["source"].real.numel() * heads
        with mock.patch.object(taps, "_WAITING_ON_CPU", rows + 1):
            watch(short, together=other.append)
        assert shown(other) == [(heads, 4)]  # too many to wait
        watch(short, together=receive)
    assert shown(together) == [(heads, 2)] * 4  # the end

    def broken(sighting: Sighting) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), tap(subject, NEEDS) as watch:
        watch(short, together=receive, receive=broken)
    assert shown(together) == [(heads, 2)] * 4  # after a fault nothing is shown any more


def test_windows_are_not_shown_together_with_layers_that_see_all() -> None:
    subject = Subject(INTERFACE["gemma3"]())
    batch, together = shaped(subject, "gemma3", pad=0), []
    with tap(subject, NEEDS) as watch:
        watch(batch, together=together.append)
    sites = [one.site for group in together for one in group.by_site()]
    assert sorted(map(str, sites)) == sorted(map(str, subject.anatomy.sites))
    for group in together:
        for one in group.by_site():
            torch.testing.assert_close(one.visible, group.visible)


# --- Samples of rows ----------------------------------------------------------------------------


def test_a_sample_has_the_first_row_and_weighs_as_much_as_the_text() -> None:
    real = torch.ones(3, 50, dtype=torch.bool)
    real[1, 20:] = False  # shorter than the sample wants: all of it
    real[2, :10] = False  # padded on the left
    places, weights = RowSample(24, seed=1, texts=((0, 0), (1, 0), (2, 0))).drawn(real)
    assert places is not None
    assert weights is not None
    torch.testing.assert_close(weights.sum(-1), torch.tensor([50.0, 20.0, 40.0]).double())
    assert places[:, 0].tolist() == [0, 0, 10]
    assert bool(real.gather(1, places).all())
    assert all(
        len(set(row[weight > 0].tolist())) == int((weight > 0).sum())
        for row, weight in zip(places, weights, strict=True)
    )


def test_short_texts_are_not_sampled() -> None:
    assert RowSample(24).drawn(torch.ones(2, 24, dtype=torch.bool)) == (None, None)


def test_a_text_s_draw_does_not_depend_on_its_batch() -> None:
    real = torch.ones(2, 40, dtype=torch.bool)
    both, _ = RowSample(8, texts=((7, 0), (9, 0))).drawn(real)
    alone, _ = RowSample(8, texts=((9, 0),)).drawn(real[:1])
    other, _ = RowSample(8, texts=((9, 1),)).drawn(real[:1])
    assert both is not None
    assert alone is not None
    assert other is not None
    assert both[1].tolist() == alone[0].tolist() != other[0].tolist()


def test_the_sample_of_sums_is_unbiased() -> None:
    """Mean over many draws of the weighed sum, against the sum over all rows."""
    noise = torch.Generator().manual_seed(0)
    values = torch.rand(60, generator=noise, dtype=torch.float64)
    real = torch.ones(1, 60, dtype=torch.bool)
    found = []
    for seed in range(800):
        places, weights = RowSample(12, seed=seed, texts=((0, 0),)).drawn(real)
        assert places is not None
        assert weights is not None
        found.append(float((values[places[0]] * weights[0]).sum()))
    estimates = torch.tensor(found)
    error = float(estimates.std() / len(found) ** 0.5)
    assert abs(float(estimates.mean()) - float(values.sum())) < 4 * error


@pytest.mark.parametrize("kind", ["bert", "llama"])
@pytest.mark.parametrize("path", ["map", "tiled"])
def test_sampled_rows_are_those_rows(kind: str, path: str) -> None:
    subject = Subject(INTERFACE[kind]())
    batch = batch_of(draw_texts(4, longest=14), "enc" if kind == "bert" else "dec")
    whole = seen(subject, batch)
    how: dict[str, Any] = {"rows": 4, "seed": 3}
    if path == "tiled":
        with without_maps():
            some = seen(subject, batch, **how)
    else:
        some = seen(subject, batch, **how)
    for one, other in zip(some, whole, strict=True):
        places = one.places
        assert places is not None
        assert places.shape[1] == 4
        at = places[:, None].expand(-1, one.site.heads, -1)
        picked = replace(
            other,
            queries=one.queries,
            visible=other.visible.gather(1, places),
            entropy=other.entropy.gather(2, at),  # type: ignore[union-attr]
            tops={name: (w.gather(2, at), k.gather(2, at)) for name, (w, k) in other.tops.items()},
            masses={name: part.gather(2, at) for name, part in other.masses.items()},
            offsets={name: part.gather(2, at) for name, part in other.offsets.items()},
        )
        assert_same(one, picked)


def test_scores_are_made_in_and_out_of_inference_mode_and_under_autocast() -> None:
    query, key, value = (torch.randn(2, 3, 20, 4) for _ in range(3))
    scores = Scores(query, key, 0.5)
    with torch.inference_mode():
        first = attended(scores, value)
    second = attended(scores, value, room=first[1])
    torch.testing.assert_close(second[0], first[0].clone())
    side = bare_side(torch.ones(2, 20, dtype=torch.long), torch.ones(2, 20, dtype=torch.bool))
    asked = Asked.of(Needs(entropy=True), side, side)
    for causal, dtype in ((False, torch.bfloat16), (True, torch.float16)):
        _, expected = tiled(replace(scores, causal=causal), asked)
        with torch.autocast("cpu", dtype=dtype):
            _, found = tiled(replace(scores, causal=causal), asked)
        torch.testing.assert_close(found["entropy"], expected["entropy"])
    odd = Call(torch.nn.Module(), query, key, value, torch.zeros(2, 20, 20), {"scaling": 0.5})
    assert not agrees(odd)  # a mask of a shape that is not known is left to the family
