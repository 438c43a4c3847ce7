"""Passes that are recorded and replayed; on a CPU a stand-in for CUDA's graphs does them again."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any
from unittest import mock

import pytest
import torch
from tiny import INTERFACE, tiny_inputs
from torch.utils._pytree import tree_map

from headcount.models.subject import Subject
from headcount.models.switch import full_rows
from headcount.rooms.kernel import fused, recording
from headcount.text.batch import Batch, ready_batch
from headcount.wiring import Needs, Sighting, tap, taps, valve

NEEDS = Needs(
    entropy=True,
    tops=frozenset({frozenset(), frozenset({"separator"})}),
    masses=frozenset({"first", "separator"}),
    offsets=frozenset({-1, 0}),
)


class Graphs:
    """Does what was recorded again, into the memory of the first time, as CUDA's graphs do."""

    def __init__(self) -> None:
        self.recorded, self.replayed = 0, 0
        self.skew = 0.0

    def __call__(self, work: Callable[[], list[Any]]) -> tuple[list[Any], Callable[[], None]]:
        self.recorded += 1
        found = work()
        copies = [tree_map(_copy, (one.visible, one.what)) for one in found]
        found = [
            one._replace(visible=visible, what=what)
            for one, (visible, what) in zip(found, copies, strict=True)
        ]

        def again() -> None:
            self.replayed += 1
            for one, new in zip(found, work(), strict=True):
                one.visible.copy_(new.visible)
                tree_map(
                    lambda a, b: a if a is None else a.copy_(b + self.skew), one.what, new.what
                )

        return found, again

    def _put(self, where: Any, part: Any) -> Any:
        return None if where is None else where.copy_(part + self.skew)


def _copy(part: Any) -> Any:
    return part if part is None else part.clone()


@pytest.fixture
def graphs() -> Iterator[Graphs]:
    """Everything that a GPU has: the kernel (by Triton's interpreter) and graphs (a stand-in)."""
    triton = pytest.importorskip("triton", reason="Triton is for Linux on x86-64")
    if not triton.knobs.runtime.interpret:
        pytest.skip("Triton's interpreter is off where there is a GPU")
    kernel = importlib.import_module("headcount.rooms.kernel.kernel")
    small, graphs = {64: (32, 16, 4, 1)}, Graphs()
    with (
        mock.patch.multiple(kernel, _TILES=small, _EXACT_TILES=small),
        mock.patch.object(fused, "available", return_value=True),
        mock.patch.object(taps, "_SMALL_MAP", -1),
        mock.patch.object(recording, "_captured", return_value=graphs),
    ):
        yield graphs


def batches(subject: Subject, count: int, padding: int = 0) -> list[Batch]:
    """Batches of one shape with other tokens each, and other separators."""
    found = []
    for number in range(count):
        inputs = tiny_inputs(subject.model)
        ids = inputs["input_ids"]
        ids = (ids + number) % 20 + 5
        inputs = {**inputs, "input_ids": ids}
        if padding:
            inputs["attention_mask"] = torch.ones_like(ids)
            inputs["attention_mask"][0, -padding:] = 0
        batch = ready_batch(inputs, subject.anatomy.stacks, first=number * len(ids))
        sides = {
            name: replace(side, separator=side.ids % 3 == number % 2, special=side.ids % 5 == 0)
            for name, side in batch.sides.items()
        }
        found.append(replace(batch, sides=sides))
    return found


def rows(subject: Subject, given: list[Batch]) -> tuple[list[Sighting], Any]:
    shown: list[Sighting] = []
    with tap(subject, NEEDS) as watch:
        for batch in given:
            watch(batch, together=shown.append)
    return shown, watch


def same(ours: list[Sighting], theirs: list[Sighting]) -> None:
    for name in ("entropy", "visible"):
        mine, other = (torch.cat([getattr(one, name) for one in own]) for own in (ours, theirs))
        assert torch.equal(mine, other)
    for name in ("masses", "offsets"):
        for key in getattr(ours[0], name):
            mine, other = (
                torch.cat([getattr(one, name)[key] for one in own]) for own in (ours, theirs)
            )
            assert torch.equal(mine, other)
    mine, other = (torch.cat([one.queries.ids for one in own]) for own in (ours, theirs))
    assert torch.equal(mine, other)


@pytest.mark.parametrize("family", ["bert", "llama"])
@pytest.mark.parametrize("padding", [0, 2])
def test_replayed_passes_give_the_rows_of_passes_as_they_come(
    graphs: Graphs, family: str, padding: int
) -> None:
    subject = Subject(INTERFACE[family]())
    given = batches(subject, 8, padding)
    found, watch = rows(subject, given)
    with mock.patch.object(recording, "_captured", return_value=None):
        expected, plainly = rows(subject, given)
    sites = len(subject.anatomy.sites)
    assert plainly.paths == {"fused": 8 * sites}
    assert graphs.recorded == 1
    assert watch.paths["recorded"] == (8 - recording._WORTH) * sites
    same(found, expected)


def test_a_shape_that_comes_seldom_is_not_recorded(graphs: Graphs) -> None:
    subject = Subject(INTERFACE["bert"]())
    _, watch = rows(subject, batches(subject, recording._WORTH - 1))
    assert watch.paths == {"fused": (recording._WORTH - 1) * len(subject.anatomy.sites)}
    assert graphs.recorded == 0


def test_a_recording_that_gives_other_rows_is_not_used(graphs: Graphs) -> None:
    graphs.skew = 0.01
    subject = Subject(INTERFACE["bert"]())
    given = batches(subject, 7)
    found, watch = rows(subject, given)
    assert graphs.recorded == 1
    assert "recorded" not in watch.paths
    with mock.patch.object(recording, "_captured", return_value=None):
        same(found, rows(subject, given)[0])


def test_a_model_that_cannot_be_recorded_goes_on_as_it_comes(graphs: Graphs) -> None:
    subject = Subject(INTERFACE["bert"]())

    def refused(work: Any) -> Any:
        graphs.recorded += 1
        raise RuntimeError("operation not permitted when stream is capturing")

    with mock.patch.object(recording, "_captured", return_value=refused):
        _, watch = rows(subject, batches(subject, 8))
    assert graphs.recorded == 1
    assert watch.paths == {"fused": 8 * len(subject.anatomy.sites)}


def test_a_valve_that_is_opened_later_is_not_passed_by(graphs: Graphs) -> None:
    subject = Subject(INTERFACE["bert"]())
    given = batches(subject, 6)
    shown: list[Sighting] = []
    with tap(subject, NEEDS) as watch:
        for batch in given:
            watch(batch, together=shown.append)
        before = watch.paths["recorded"]
        assert before
        with valve(subject, {subject.heads[0]: 0.0}):
            watch(given[0], together=shown.append)
        assert watch.paths["recorded"] == before


def test_nothing_is_kept_of_recordings_after_the_tap(graphs: Graphs) -> None:
    subject = Subject(INTERFACE["bert"]())
    _, watch = rows(subject, batches(subject, 6))
    assert not watch.recordings._made


def test_full_rows_get_no_mask_and_padded_ones_do() -> None:
    from headcount.models.switch import _spared

    asked: list[dict[str, Any]] = []

    def theirs(**how: Any) -> str:
        asked.append(how)
        return "a mask"

    made, square = _spared(theirs), {"q_length": 4, "kv_length": 4}
    assert made(**square) == "a mask"
    with full_rows(True):
        assert made(**square) is None
        assert made(q_length=4, kv_length=9) == "a mask"  # a cache: causality is not at the corner
        assert made(**square, allow_is_causal_skip=False) == "a mask"
        cross = {"q_length": 4, "kv_length": 9, "allow_is_causal_skip": False}
        assert made(**cross, allow_is_bidirectional_skip=True) is None
        assert made(**square, local_size=3) == "a mask"
        assert made(**square, local_size=5) is None
    with full_rows(False):
        assert made(**square) == "a mask"
