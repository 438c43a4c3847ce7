"""Trials never show their batches: the same figures for any batch size."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pandas as pd
import pytest
import tiny_subjects
from tiny_tokenizers import ENGLISH, PAIRS

from headcount.rooms.trials.alignment import Pairs, SinkTrial
from headcount.rooms.trials.needle import Needle
from headcount.rooms.trials.repeats import Copying, Repeats
from headcount.surveys.passes import run_trials

WRITER, TRANSLATOR = tiny_subjects.writer("gpt2"), tiny_subjects.translator()
LONG = [" ".join(ENGLISH)] * 4

TRIALS: dict[str, tuple[Any, Callable[[int], Any]]] = {
    "repeats": (TRANSLATOR, lambda size: Repeats(length=6, examples=7, batch_size=size)),
    "copying": (WRITER, lambda size: Copying(Repeats(length=6, examples=7, batch_size=size))),
    "sink": (WRITER, lambda size: SinkTrial(ENGLISH, length=12, examples=7, batch_size=size)),
    "needle": (
        WRITER,
        lambda size: Needle(LONG, lengths=(360,), depths=(0.2, 0.7), each=2, batch_size=size),
    ),
    "pairs": (TRANSLATOR, lambda size: Pairs(PAIRS, examples=7, batch_size=size)),
}


@pytest.mark.parametrize("name", TRIALS)
def test_batch_size_never_shows(name: str) -> None:
    subject, made = TRIALS[name]
    one, many = (run_trials(subject, trials=[made(size)]) for size in (1, 4))
    pd.testing.assert_frame_equal(one.frame, many.frame, atol=2e-5, rtol=2e-4)
    assert one.notes == many.notes
    assert one.details.keys() == many.details.keys()
    for detail in one.details:
        pd.testing.assert_frame_equal(one.details[detail], many.details[detail], atol=1e-3)


def test_the_same_seed_gives_the_same_figures() -> None:
    trial = Repeats(length=6, examples=5)
    one, same = (run_trials(WRITER, trials=[trial]) for _ in range(2))
    pd.testing.assert_frame_equal(one.frame, same.frame)
    other = run_trials(WRITER, trials=[replace(trial, seed=1)])
    assert not one.frame.equals(other.frame)
