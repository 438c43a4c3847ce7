"""The story times its sizes: whole and without the heads that the page shows as pruned."""

from __future__ import annotations

from pathlib import Path

import pytest
from report_runs import made_curve, made_run
from tiny_subjects import translator

from headcount.records.run import Run
from headcount.rooms.bench.sizes import bench_frame, megabytes, strip_sets


def test_every_size_is_timed_against_the_whole_model() -> None:
    subject = translator()
    heads = subject.heads
    found = bench_frame(subject, [tuple(heads[:1]), tuple(heads[:3])])
    assert found["heads_left"].tolist() == [len(heads), len(heads) - 1, len(heads) - 3]
    assert found["removed"].tolist()[0] == ""
    assert found["megabytes"].is_monotonic_decreasing
    assert found["megabytes"][0] == pytest.approx(megabytes(subject))
    assert (found["seconds"] > 0).all()
    # one baseline: the whole model's seconds are those of every gain
    assert (found["seconds"] * (1 + found["gain"])).tolist() == pytest.approx(
        [found["seconds"][0]] * 3
    )
    assert (found["gain_low"] <= found["gain"]).all()


def test_the_sizes_are_those_of_the_page(tmp_path: Path) -> None:
    sizes = {"enc": (2, 4)}
    run = made_run(tmp_path / "run", sizes)
    with Run.open(run) as opened:
        sets = strip_sets(opened)
        steps = made_curve(sizes).query("order == 'ablation'")["heads_left"]
    assert sets[0] == ()
    assert {8 - len(one) for one in sets} <= set(steps)
    assert len(sets) > 2
