"""Both ways agree on real models: an encoder, a decoder with shared key heads, the translator."""

from __future__ import annotations

import numpy as np
import pytest
from small_tasks import PAIRS, TEXTS

from headcount import tasks
from headcount.importance.sweeps.interventions import MODES, Intervention
from headcount.importance.sweeps.sweeping import sweep
from headcount.models.loading import load
from headcount.models.subject import Subject
from headcount.tasks.task import Task


def assert_both_ways_agree(subject: Subject, task: Task, places: list[int]) -> None:
    heads = [subject.heads[place] for place in places]
    chosen = [Intervention([head], mode) for head in heads for mode in MODES]  # type: ignore[arg-type]
    chosen.append(Intervention(heads, name="all of them"))
    short, long = (sweep(subject, task, chosen, batch_size=4, fast=fast) for fast in (True, False))
    assert short.fast
    for one, mine, yours in zip(chosen, short.outcomes, long.outcomes, strict=True):
        np.testing.assert_allclose(
            mine.statistics, yours.statistics, rtol=2e-5, atol=1e-5, err_msg=one.name
        )
        assert mine.value != short.baseline.value


def test_the_translator() -> None:
    subject = load("translator", device="cpu")
    assert_both_ways_agree(subject, tasks.translation(PAIRS, metric="loss"), [0, 47, 60, 130])


@pytest.mark.real
def test_minilm(minilm: Subject) -> None:
    alike = [(*pair, float(place)) for place, pair in enumerate(PAIRS)]
    assert_both_ways_agree(minilm, tasks.similarity(alike), [0, 40, 71])


@pytest.mark.real
def test_smollm2(smollm2: Subject) -> None:
    assert_both_ways_agree(smollm2, tasks.lm(TEXTS[:3]), [4, 150, 269])
