"""Exhibits come back from a run as they were put in, and damage is told."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from headcount.errors import RunError, UsageError
from headcount.records.run import Run
from headcount.rooms.exhibits.exhibits import SIDES, Exhibit, Text, read_exhibits, write_exhibits


def exhibit(name: str = "sample-001", own: bool = False) -> Exhibit:
    rng = np.random.default_rng(0)
    source = Text(["Rain", "##y", "</s>"], [False, False, True], [0, 0, -1], ["Rainy"])
    target = Text(["<s>", "<img src=x>"], [True, False])
    sizes = {"src": 3, "tgt": 2}
    maps = {}
    for stack, (asking, answering) in SIDES.items():
        for layer in (10, 2):
            weights = rng.dirichlet(np.ones(sizes[answering]), (4, sizes[asking]))
            maps[stack, layer] = weights.astype("float32")
    return Exhibit(name, "Rainy", {"src": source, "tgt": target}, dict(SIDES), maps, own)


def test_exhibits_come_back_as_they_were(tmp_path: Path) -> None:
    ours = [exhibit(), exhibit("own-002", own=True)]
    with Run.open(tmp_path / "run") as run:
        write_exhibits(run, ours)
        found = read_exhibits(run)
    assert [one.id for one in found] == ["sample-001", "own-002"]
    assert [one.own_text for one in found] == [False, True]
    assert found[0].texts == ours[0].texts
    assert found[0].sides == ours[0].sides
    assert list(found[0].maps) == [(s, layer) for s in ("enc", "dec", "cross") for layer in (2, 10)]
    for key, maps in found[0].maps.items():
        assert maps.dtype == np.float32
        np.testing.assert_allclose(maps, ours[0].maps[key], atol=5e-4)


def test_new_exhibits_take_the_place_of_old_ones(tmp_path: Path) -> None:
    with Run.open(tmp_path / "run") as run:
        write_exhibits(run, [exhibit("a"), exhibit("b")])
        write_exhibits(run, [exhibit("b")])
    assert sorted(p.name for p in (tmp_path / "run/exhibits").iterdir()) == ["b.npz", "index.json"]


def test_a_run_without_exhibits_has_none(tmp_path: Path) -> None:
    assert read_exhibits(tmp_path) == []


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(UsageError, match="cannot name an exhibit"):
        exhibit("../evil")
    with pytest.raises(UsageError, match="'special' has 1 places, and there are 2 tokens"):
        Text(["a", "b"], [False])
    with pytest.raises(UsageError, match="word 1, which has no text"):
        Text(["a", "b"], [False, False], [0, 1], ["a"])
    text = Text(["a"], [False])
    with pytest.raises(UsageError, match=r"map of enc.0 in exhibit x is \(2, 2\)"):
        Exhibit("x", "a", {"src": text}, dict(SIDES), {("enc", 0): np.zeros((1, 2, 2), "float32")})


def test_two_exhibits_of_one_name_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    with Run.open(tmp_path / "run") as run:
        with pytest.raises(UsageError, match="Two exhibits are named 'a'"):
            write_exhibits(run, [exhibit("a"), exhibit("a")])
        assert read_exhibits(run) == []


@pytest.mark.parametrize(
    ("index", "told"),
    [
        ('{"schema": 1, "exh', "cut off or damaged"),
        ('{"schema": 9, "exhibits": []}', "newer headcount"),
        ('{"schema": 1, "exhibits": [{"id": "gone"}]}', "cut off or damaged"),
        ('{"schema": 1, "exhibits": [{"id": "../../x"}]}', "names no exhibit"),
        ("[]", "cut off or damaged"),
    ],
)
def test_damage_is_told(tmp_path: Path, index: str, told: str) -> None:
    (tmp_path / "exhibits").mkdir()
    (tmp_path / "exhibits/index.json").write_text(index)
    with pytest.raises(RunError, match=told):
        read_exhibits(tmp_path)


def test_maps_that_are_cut_off_are_told(tmp_path: Path) -> None:
    with Run.open(tmp_path / "run") as run:
        write_exhibits(run, [exhibit("a")])
    file = tmp_path / "run/exhibits/a.npz"
    file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(RunError, match="cut off or damaged"):
        read_exhibits(tmp_path / "run")
