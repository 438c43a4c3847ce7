"""Divergences between heads: the definition, and that plumbing leaves them alone."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sightings import Text, batch_of, draw_texts
from tiny_subjects import encoder, translator

from headcount.errors import UsageError
from headcount.models.subject import Subject
from headcount.rooms.families.divergence import (
    Divergence,
    gram,
    js_features,
    minus_divergence,
    table,
)
from headcount.wiring import Needs, tap


def slow_js(p: np.ndarray, q: np.ndarray) -> float:
    """0.5 KL(p|m) + 0.5 KL(q|m), term by term."""
    m = (p + q) / 2
    return float((p * np.log(p / m) + q * np.log(q / m)).sum() / 2)


def tallied(subject: Subject, batches: list, convention: str = "headcount") -> Divergence:
    tally = Divergence(convention)
    with tap(subject, Needs(maps=True)) as watch:
        for batch in batches:
            for sighting in watch(batch):
                tally.update(sighting)
    return tally


@pytest.fixture(scope="module")
def tiny() -> Subject:
    return encoder()


@pytest.mark.parametrize("keys", [2, 150, 512, 513, 100_000])
def test_features_are_as_far_apart_as_the_divergence_says(keys: int) -> None:
    """Every pair of weights that a text may have, beside what rounds each weight by 6e-5."""
    weights = np.geomspace(0.001 / keys, 1, 97)
    features = js_features(torch.tensor(weights, dtype=torch.float32), keys).double().numpy()
    ours = ((features[:, None] - features[None]) ** 2).sum(-1) / 2
    x, y = np.meshgrid(np.float32(weights).astype(float), np.float32(weights).astype(float))
    m = (x + y) / 2
    theirs = (x * np.log(x / m) + y * np.log(y / m)) / 2
    off = ~np.eye(len(weights), dtype=bool)
    rounding = 6.2e-5 * (1 + 4 / np.abs(np.log(x / y))[off])
    assert (np.abs(ours[off] / theirs[off] - 1) < 1.1e-4 + rounding).all()
    assert np.abs(np.diag(ours)).max() == 0


@pytest.mark.parametrize("sharpness", [0.3, 1, 4, 30])
@pytest.mark.parametrize("length", [150, 600])
def test_whole_maps_are_a_ten_thousandth_off_at_most(sharpness: float, length: int) -> None:
    """Flat and sharp ones; more weights than are held at a time, and a last part that is short."""
    dice = torch.Generator().manual_seed(0)
    maps = (sharpness * torch.randn(13, length, length, generator=dice)).softmax(-1)
    maps[0], maps[1] = torch.eye(length), 1 / length
    ours, exact = gram(maps).numpy(), -minus_divergence(maps).numpy()
    own = ours.diagonal()
    found = (own[:, None] + own[None]) / 2 - ours
    np.testing.assert_allclose(found, exact, rtol=1.2e-4, atol=1e-7 * length)


def test_weights_below_the_table_take_its_first_row() -> None:
    features = js_features(torch.tensor([0.0, 1e-12, 1.009]), 50)
    np.testing.assert_array_equal(features[0], table(True)[0])
    np.testing.assert_array_equal(features[1], table(True)[0])
    assert bool(torch.isfinite(features).all())


@pytest.mark.parametrize("convention", ["headcount", "paper", "code"])
def test_it_is_the_definition(tiny: Subject, convention: str) -> None:
    texts = draw_texts(3)
    found = tallied(tiny, [batch_of(texts, "enc")], convention).pairs()["enc"]
    expected = np.zeros_like(found.js_sum)
    with tap(tiny, Needs(maps=True)) as watch:
        for text in texts:
            maps = torch.cat([seen.maps[0] for seen in watch(batch_of([text], "enc"))])
            maps = maps.double().numpy()
            smooth = 0.999 * maps + 0.001 / maps.shape[-1]
            for i, one in enumerate(smooth):
                expected[i] += [slow_js(one, other) for other in smooth]
    tolerance = 1e-4 if convention == "headcount" else 1e-6
    np.testing.assert_allclose(found.js_sum, expected, rtol=tolerance, atol=2e-6)
    assert found.rows == sum(len(text.source) for text in texts)


def test_batches_and_padding_leave_it_alone(tiny: Subject) -> None:
    texts = draw_texts(6)
    together = tallied(tiny, [batch_of(texts, "enc", left=True, extra=3)])
    parts = [tallied(tiny, [batch_of(texts[a:b], "enc")]) for a, b in ((0, 2), (2, 6))]
    parts[0].merge(parts[1])
    ours, theirs = together.pairs()["enc"], parts[0].pairs()["enc"]
    np.testing.assert_allclose(ours.js_sum, theirs.js_sum, atol=1e-5)
    assert ours.rows == theirs.rows
    assert ours.heads == theirs.heads == tuple(tiny.heads)


def test_each_stack_is_compared_with_itself() -> None:
    subject = translator()
    pairs = tallied(subject, [batch_of(draw_texts(3), "enc-dec")]).pairs()
    assert list(pairs) == ["enc", "dec", "cross"]
    for stack, one in pairs.items():
        assert {head.stack for head in one.heads} == {stack}
        assert np.allclose(one.js_sum, one.js_sum.T)
        assert (np.diag(one.js_sum) == 0).all()


def test_a_map_of_one_token_has_no_divergence(tiny: Subject) -> None:
    found = tallied(tiny, [batch_of([Text((7,))], "enc")]).pairs()["enc"]
    assert np.abs(found.js_sum).max() < 1e-6
    assert found.rows == 1


def test_what_is_no_number_stays_none() -> None:
    maps = torch.full((2, 3, 3), 1 / 3)
    maps[0, 1, 1] = torch.nan
    assert gram(maps).isnan().any()
    assert minus_divergence(maps).isnan().any()


def test_a_convention_that_is_none_is_refused() -> None:
    with pytest.raises(UsageError, match="There is no convention 'mine'; choose headcount"):
        Divergence("mine")
