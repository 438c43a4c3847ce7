"""The looked-at maps: whole, parted by head, and judged as the results page says."""

from __future__ import annotations

import json

import numpy as np
import pytest

from headcount.rooms.patterns.tally import PATTERNS
from research.patterns.__main__ import NAME, RESULTS
from research.patterns.drawn import drawn_maps
from research.patterns.heads import FAMILY
from research.patterns.judged import agreement, passes, score, told
from research.patterns.looked_at import looked_at
from research.patterns.store import read_maps, write_maps


@pytest.fixture(scope="module")
def looked():  # type: ignore[no-untyped-def]
    maps, about = looked_at()
    about["family"] = [FAMILY[name] for name in about["model"]]
    return maps, about


def test_the_test_is_large_enough_and_no_head_is_in_two_parts(looked) -> None:  # type: ignore[no-untyped-def]
    maps, about = looked
    assert len(maps) == len(about) == 524 + 432 + 264
    assert ((about["part"] == "test") & (about["draw"] == 1)).sum() >= 400
    assert (about[about["part"] == "test"]["label"] == "block").sum() >= 30
    heads = {
        part: set(zip(f["family"], f["head"], strict=True)) for part, f in about.groupby("part")
    }
    assert not heads["test"] & heads["dev"]


def test_maps_are_maps_of_these_sizes(looked) -> None:  # type: ignore[no-untyped-def]
    maps, about = looked
    assert [len(one.weights) for one in maps] == about["tokens"].tolist()
    for one in maps:
        assert np.allclose(one.weights.sum(1), 1, atol=1e-5)
        assert one.special.any()
    paired = np.array([one.segment.any() for one in maps])
    assert (paired == about["kind"].str.endswith("pair").to_numpy()).all()


def test_the_page_tells_what_the_labels_say(looked) -> None:  # type: ignore[no-untyped-def]
    maps, about = looked
    page = json.loads((RESULTS / f"{NAME}.json").read_text(encoding="utf8"))
    for draw in (1, 2):
        one = about[about["draw"] == draw]
        assert page["the reader, twice"][f"draw {draw}"]["kappa"] == passes(one)["kappa"]
    test = about[(about["part"] == "test") & (about["draw"] == 1)].copy()
    assert agreement(test, "label", "other")["f1"] == page["two readers"]["test"]["f1"]
    test["rule"] = told([maps[place] for place in test.index], "rule")
    assert score(test, "rule")["accuracy"] == page["rule"]["test"]["accuracy"]
    some = test.index[::8]
    first = told([maps[place] for place in some], "network")
    right = np.mean([one == two for one, two in zip(first, test["label"][some], strict=True)])
    assert abs(right - page["network"]["test"]["accuracy"]["value"]) < 0.15


def test_drawn_maps_are_maps_with_all_labels(tmp_path) -> None:  # type: ignore[no-untyped-def]
    maps, labels = drawn_maps(120, seed=3)
    assert set(labels) == set(range(len(PATTERNS)))
    assert all(np.allclose(one.weights.sum(1), 1, atol=1e-5) for one in maps)
    maps = [one for one in maps if one.segment is not None]
    write_maps(tmp_path / "maps.npz", maps)
    again = read_maps(tmp_path / "maps.npz")
    assert max(np.abs(a.weights - b.weights).max() for a, b in zip(maps, again, strict=True)) < 0.02


def test_two_readers_are_compared_class_by_class(looked) -> None:  # type: ignore[no-untyped-def]
    _, about = looked
    test = about[about["part"] == "test"]
    assert test["other"].isin(PATTERNS).all()
    alike = agreement(test.assign(other=test["label"]), "label", "other")
    assert alike["same"] == alike["kappa"]["value"] == alike["macro f1"]["value"] == 1
    found = agreement(test, "label", "other")
    block = (test["label"] == "block").to_numpy(), (test["other"] == "block").to_numpy()
    both = [float(np.mean(one)) for one in block]
    chance = both[0] * both[1] + (1 - both[0]) * (1 - both[1])
    agreed = float(np.mean(block[0] == block[1]))
    value = found["kappa of one class against the rest"]["block"]["value"]
    assert value == pytest.approx((agreed - chance) / (1 - chance), abs=1e-4)
