"""Paired means: sums that add up to the means, intervals and tests of whole samples."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from trees import site

from headcount import stats
from headcount.models.site import SiteGroup
from headcount.rooms.words.pairs import Compared, PairedMeans

HEADS = 2


def sample(texts: int = 40, seed: int = 0) -> tuple[Compared, torch.Tensor]:
    noise = torch.Generator().manual_seed(seed)
    value, baseline = torch.rand(2, texts, HEADS, 2, generator=noise, dtype=torch.float64)
    there, known = torch.rand(2, texts, 2, generator=noise) < 0.8
    value[~there[:, None].expand_as(value)] = torch.nan  # nothing of these may enter
    baseline[~(known & there)[:, None].expand_as(value)] = torch.nan
    return Compared(value, there, baseline, known), torch.arange(texts) % 2 == 0


def test_figures_are_those_of_the_sample() -> None:
    found, chosen = sample()
    means = PairedMeans()
    means.add(site(heads=HEADS), ["a", "b"], found, chosen)
    frame = means.frame("question")
    assert set(frame["split"]) == {"select", "report", "all"}
    for (question, split, head), rows in frame.groupby(["question", "split", "head"]):
        place = ["a", "b"].index(question)
        inside = {"select": chosen, "report": ~chosen, "all": chosen | ~chosen}[split]
        there = (found.there[:, place] & inside).numpy()
        both = (found.known[:, place] & found.there[:, place] & inside).numpy()
        value = found.value[:, head, place].numpy()
        away = (value - found.baseline[:, head, place].numpy())[both]
        row = rows.iloc[0]
        assert row["n"] == there.sum()
        assert row["value"] == pytest.approx(value[there].mean())
        assert row["compared"] == pytest.approx(value[both].mean())
        assert row["difference"] == pytest.approx(away.mean())
        expected = stats.mean_interval(away.sum(), (away**2).sum(), len(away))
        assert row["difference_low"] == pytest.approx(float(expected.low))
        assert np.isnan(row["p"]) == (split != "report")
        if split == "report":
            p = stats.ratio_test(
                away.sum(), len(away), (away**2).sum(), away.sum(), len(away), len(away)
            )
            assert row["p"] == pytest.approx(float(p))


def test_holm_goes_over_all_heads_and_questions_and_less_is_the_other_side() -> None:
    found, chosen = sample()
    means = PairedMeans()
    means.add(site(heads=HEADS), ["a", "b"], found, chosen)
    greater, less = means.frame("q").query("split == 'report'"), means.frame("q", side="less")
    less = less.query("split == 'report'")
    np.testing.assert_allclose(greater["p"] + less["p"], 1)
    np.testing.assert_allclose(greater["p_adjusted"], stats.holm(greater["p"].to_numpy()))


def test_shards_add_up_in_any_order() -> None:
    found, chosen = sample()

    def part(rows: slice) -> PairedMeans:
        means = PairedMeans()
        pieces = (found.value, found.there, found.baseline, found.known)
        cut = Compared(*(piece[rows] for piece in pieces))
        means.add(site(heads=HEADS), ["a", "b"], cut, chosen[rows])
        return means

    whole, one, other, empty = (
        part(slice(None)),
        part(slice(25, 40)),
        part(slice(25)),
        PairedMeans(),
    )
    one.merge(other)
    empty.merge(one)
    for column in ("n", "value", "low", "difference", "p_adjusted"):
        np.testing.assert_allclose(
            empty.frame("q")[column], whole.frame("q")[column], atol=1e-12, equal_nan=True
        )


def test_few_texts_are_shown_and_not_tested() -> None:
    found, chosen = sample(12)
    means = PairedMeans()
    means.add(site(heads=HEADS), ["a", "b"], found, chosen)
    assert means.frame("q", support=30)["p"].isna().all()
    assert means.frame("q")["p"].notna().any()


def test_attention_that_is_no_number_is_known() -> None:
    found, chosen = sample(4)
    means = PairedMeans()
    broken = torch.full_like(found.value, torch.nan)
    means.add(
        site(heads=HEADS), ["a", "b"], Compared(broken, found.there, broken, found.known), chosen
    )
    assert means.broken(site(heads=HEADS))


def test_layers_of_a_batch_are_added_up_as_one_and_each_keeps_its_own() -> None:
    found, chosen = sample()
    other = replace(found, value=found.value * 0.5)
    layers = [site(layer=layer, heads=HEADS) for layer in (0, 1)]
    together, group = PairedMeans(), PairedMeans()
    for layer, one in zip(layers, (found, other), strict=True):
        together.add(layer, ["a", "b"], one, chosen)
    assert len(together._held) == 1  # both wait
    side_by_side = (torch.cat([found.value, other.value], 1), found.there)
    baselines = torch.cat([found.baseline] * 2, 1)
    both = Compared(*side_by_side, baselines, found.known)
    group.add(SiteGroup.of(layers), ["a", "b"], both, chosen)
    for layer, one in zip(layers, (found, other), strict=True):
        alone = PairedMeans()
        alone.add(layer, ["a", "b"], one, chosen)
        for means in (together, group):
            assert list(means) == layers
            np.testing.assert_allclose(means.mean(layer, "a"), alone.mean(layer, "a"), rtol=1e-12)


def test_batches_with_other_items_do_not_pile_up() -> None:
    means = PairedMeans()
    for number in range(40):
        found, chosen = sample(6, seed=number)
        means.add(site(heads=HEADS), [f"a{number}", "b"], found, chosen)
        assert len(means._held) == 1
    assert means.items(site(heads=HEADS))[-1] == "b"
