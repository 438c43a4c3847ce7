"""The speed report: its arithmetic on made-up times, and a real run on a tiny model."""

from __future__ import annotations

import json
import math
from contextlib import nullcontext
from dataclasses import replace
from typing import Any
from unittest import mock

import pytest
import torch
from tiny import TINY
from transformers.integrations import sdpa_attention
from watching import told

from headcount.errors import UsageError
from headcount.models.subject import Subject
from headcount.pruning.remove import prune
from headcount.records.files import to_strict
from headcount.rooms.bench import costs as clock
from headcount.rooms.bench import speed as timing
from headcount.rooms.bench.costs import ModelCosts, part_times, trial_inputs
from headcount.rooms.bench.speed import SpeedReport, interleaved, latency, speed_of

WHOLE = ModelCosts(
    parameters=100,
    attention_parameters=40,
    parts={"projections": 40.0, "maps": 10.0, "feed-forward": 50.0, "ends": 0.0},
    kv_bytes=8,
    source_kv_bytes=0,
    tokens=16,
    batch=4,
)
SMALL = replace(
    WHOLE,
    parameters=80,
    attention_parameters=20,
    parts={"projections": 20.0, "maps": 5.0, "feed-forward": 50.0, "ends": 0.0},
    kv_bytes=4,
)
ONE = {"projections": 3.0, "maps": 1.0, "feed-forward": 4.0, "ends": 0.0, "rest": 2.0}
OTHER = {"projections": 2.0, "maps": 0.5, "feed-forward": 4.0, "ends": 0.0, "rest": 2.0}


@pytest.fixture(scope="module")
def pair() -> tuple[Subject, Subject]:
    whole = Subject(TINY["gpt2"](), name="tiny")
    return whole, prune(whole, [head for head in whole.heads if head.index % 2])


def test_a_gain_is_the_median_of_pairs_and_an_outlier_moves_nothing() -> None:
    whole, small = [1.2] * 14 + [9.0], [1.0] * 14 + [0.1]
    speed = speed_of((whole, small), (WHOLE, SMALL), None)
    assert (speed.gain, speed.low, speed.high) == pytest.approx((0.2, 0.2, 0.2))
    assert speed.limit == pytest.approx(100 / 75 - 1)
    assert speed.reached == pytest.approx(0.6)
    assert speed.throughput == pytest.approx((4 / 1.2, 4.0))


def test_what_is_not_gained_is_shared_out_whole() -> None:
    leak = speed_of(([1.0] * 6, [0.9] * 6), (WHOLE, SMALL), (ONE, OTHER)).leak
    assert leak is not None
    assert leak.limit == pytest.approx(0.25)
    assert leak.saved == pytest.approx(0.15)
    # Only 4 of 10 seconds shrink by half: 5 points are not there to be had.
    assert leak.elsewhere == pytest.approx(0.05)
    assert leak.slower["projections"] == pytest.approx(0.05)
    assert leak.slower["feed-forward"] == leak.slower["rest"] == 0
    assert leak.limit - leak.saved == pytest.approx(leak.elsewhere + sum(leak.slower.values()))


def test_the_report_prints_costs_gains_and_where_the_rest_went() -> None:
    speed = speed_of(([1.2] * 15, [1.0] * 15), (WHOLE, SMALL), (ONE, OTHER))
    report = SpeedReport("big", "small", (8, 4), (WHOLE, SMALL), (speed,), {"device": "CPU"})
    text = str(report)
    assert "parameters                           100              80  -20.0%" in text
    assert "cache, bytes a token                   8               4  -50.0%" in text
    assert "+20.0% [+20.0%, +20.0%]" in text
    assert "+33.3%      0.60" in text
    assert "noisy" not in text
    assert "Operations alone would save 25.0% of the time; 15.0% was saved." in text


@pytest.mark.parametrize(
    ("small", "word"), [([0.8] * 7 + [1.3] * 8, "too noisy"), ([1.3] * 15, "slower")]
)
def test_no_share_of_the_limit_where_nothing_was_surely_gained(
    small: list[float], word: str
) -> None:
    speed = speed_of(([1.0] * 15, small), (WHOLE, SMALL), (ONE, OTHER))
    assert math.isnan(speed.reached)
    assert to_strict(speed.to_json())["reached"] is None
    report = SpeedReport("big", "small", (8, 4), (WHOLE, SMALL), (speed,), {"device": "CPU"})
    assert f"+33.3% {word:>9}" in str(report)
    told = "Too noisy to tell, in 1 of 1 rows: the gain's interval has 0 in it, so these pairs show"
    advice = "Take more of them (--pairs 60), larger batches or longer texts (--timing)"
    for sentence in (told, advice):
        assert (sentence in str(report)) == (word == "too noisy")
    assert ("was saved" in str(report)) == (word == "slower")


def test_two_models_are_timed_in_turns(pair: tuple[Subject, Subject]) -> None:
    seen: list[tuple[int, int]] = []
    with told(lambda done, total, title: seen.append((done, total))):
        report = latency(*pair, batches=(1, 2), lengths=(4, 5000), pairs=6)
    assert [(speed.batch, speed.length) for speed in report.speeds] == [(1, 4), (2, 4)]
    assert seen == [(1, 2), (2, 2)]
    assert "5000 were asked for" in report.notes[0]
    assert report.heads == (len(pair[0].heads), len(pair[1].heads))
    for speed in report.speeds:
        assert speed.low <= speed.gain <= speed.high
        assert speed.limit > 0
        assert set(speed.whole_parts) == {"projections", "maps", "feed-forward", "ends", "rest"}
    assert report.costs[1].kv_bytes < report.costs[0].kv_bytes
    json.dumps(to_strict(report.to_json()))


def test_rounds_alternate() -> None:
    order: list[str] = []
    ways = {name: (lambda name=name: order.append(name)) for name in "ab"}
    interleaved(ways, rounds=2, warm_up=0)
    assert order == ["a", "b", "b", "a"]


def test_every_part_gets_its_own_time(
    pair: tuple[Subject, Subject], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A clock that ticks once a look: parts show how often they were entered."""
    ticks = iter(range(10**6))
    monkeypatch.setattr(clock, "_clock", lambda _: (lambda: next(ticks), lambda a, b: float(b - a)))
    whole = pair[0]
    (found,) = part_times([whole], trial_inputs(whole, 4, 1), rounds=1)
    layers = len(whole.anatomy.sites)
    assert found["projections"] == 2 * layers  # GPT-2's fused one, and the output
    assert found["feed-forward"] == 2 * layers
    assert found["maps"] > 0
    assert found["ends"] == 1  # the head for words
    assert whole.model.training == pair[1].model.training


def test_models_that_do_not_go_together_are_refused(pair: tuple[Subject, Subject]) -> None:
    whole, small = pair
    with pytest.raises(UsageError, match="5 pairs give no interval; take 6 or more"):
        latency(whole, small, pairs=5)
    with pytest.raises(UsageError, match=r"takes \d+ tokens at most, and 5000"):
        latency(whole, small, lengths=(5000,))
    with pytest.raises(UsageError, match="recorded as a CUDA graph, and the model is on cpu"):
        latency(whole, small, way="graph")
    half = Subject(TINY["gpt2"]().to(torch.bfloat16), name="half")
    with pytest.raises(UsageError, match="tiny and half differ in dtype"):
        latency(whole, half)


def test_rows_without_padding_need_no_mask_and_give_the_same() -> None:
    subject = Subject(TINY["bert"](), name="tiny")
    inputs = trial_inputs(subject, 8, 2)
    seen: list[object] = []
    own = sdpa_attention.sdpa_attention_forward
    expected = subject.model(**inputs).last_hidden_state

    def attend(module: object, query: object, key: object, value: object, mask: object, **_: Any):
        seen.append(mask)
        return own(module, query, key, value, mask, **_)  # type: ignore[arg-type]

    name = subject.model.config._attn_implementation
    inputs["attention_mask"] = torch.ones_like(inputs["input_ids"])
    with (
        mock.patch.object(sdpa_attention, "sdpa_attention_forward", attend),
        timing._full_rows(subject),
    ):
        found = subject.model(**inputs).last_hidden_state
    assert set(seen) == {None}
    assert subject.model.config._attn_implementation == name
    torch.testing.assert_close(found, expected)


def test_models_with_windows_keep_their_masks() -> None:
    subject = Subject(TINY["gemma3"](), name="tiny")
    name = subject.model.config._attn_implementation
    with timing._full_rows(subject):
        assert subject.model.config._attn_implementation == name


def test_a_forward_that_cannot_be_recorded_is_told_in_a_sentence() -> None:
    subject = Subject(TINY["bert"](), name="tiny")

    def stream() -> None:
        raise RuntimeError("operation not permitted when stream is capturing\nCompile with ...")

    with (
        mock.patch.object(torch.cuda, "device", nullcontext),
        mock.patch.object(torch.cuda, "Stream", stream),
        pytest.raises(UsageError) as told,
    ):
        timing._recorded(subject, lambda: None)
    assert str(told.value) == (
        "The forward of tiny cannot be recorded as a CUDA graph (operation not permitted when "
        "stream is capturing); time it as it is (--timing way=plain)."
    )
