"""Measured latency and throughput of a pruned model beside the whole one, in turns in one run.

Michel et al. 2019, table 4, with real removal: not masks, which save nothing.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import Any

import torch

from headcount.errors import UsageError
from headcount.models.quiet import quiet
from headcount.models.rest import at_rest
from headcount.pruning.bench_options import check_pairs
from headcount.pruning.costs import costs_of
from headcount.pruning.forward_ways import Way, check_way, ready
from headcount.pruning.interleave import interleaved
from headcount.pruning.part_times import part_times
from headcount.pruning.speed import Speed, speed_of
from headcount.pruning.speed_report import SpeedReport
from headcount.pruning.trial_inputs import trial_inputs
from headcount.subject import Subject

__all__ = ["BATCHES", "LENGTHS", "PAIRS", "latency"]

BATCHES, LENGTHS, PAIRS = (1, 4, 16, 64), (32, 128, 512), 15
#: Forwards that take less than this are repeated: a clock has its own grain.
SECONDS = 0.005


def latency(
    whole: Subject,
    small: Subject,
    *,
    batches: Sequence[int] = BATCHES,
    lengths: Sequence[int] = LENGTHS,
    pairs: int = PAIRS,
    way: Way = "plain",
    parts: bool = True,
    progress: Callable[[int, int], None] | None = None,
) -> SpeedReport:
    """Time forwards of two models in turns: gains with intervals, limits, and what ate the rest.

    `way` is "plain", "graph" (CUDA graphs) or "compile", for both models alike. `parts` times the
    parts of a forward too, always plainly. Lengths that the model does not take are left out,
    with a note.
    """
    _check(whole, small, pairs)
    check_way(way, whole.device)
    wanted, notes = _lengths(whole, lengths)
    cells = [(batch, length) for length in wanted for batch in batches]
    speeds = []
    with ExitStack() as stack:
        stack.enter_context(quiet())
        for subject in (whole, small):
            stack.enter_context(at_rest(subject.model))
        for number, cell in enumerate(cells):
            speeds.append(_measured(whole, small, *cell, pairs, way, parts))
            if progress is not None:
                progress(number + 1, len(cells))
    longest = max(wanted)
    return SpeedReport(
        whole=whole.name,
        small=small.name,
        heads=(len(whole.heads), len(small.heads)),
        costs=(costs_of(whole, longest), costs_of(small, longest)),
        speeds=tuple(speeds),
        about=_about(whole, pairs, way),
        notes=notes,
    )


def _measured(
    whole: Subject, small: Subject, batch: int, length: int, pairs: int, way: Way, parts: bool
) -> Speed:
    inputs = trial_inputs(whole, length, batch)
    repeats = _repeats(ready(whole, inputs, "plain"))
    ways = {
        "whole": ready(whole, inputs, way, repeats),
        "small": ready(small, inputs, way, repeats),
    }
    seconds = interleaved(ways, pairs)
    one, other = ([taken / repeats for taken in seconds[name]] for name in ("whole", "small"))
    costs = costs_of(whole, length, batch), costs_of(small, length, batch)
    timed = part_times([whole, small], inputs) if parts else None
    return speed_of((one, other), costs, timed)


def _repeats(work: Callable[[], object]) -> int:
    """How often a short forward is run for one sample."""
    work()
    start = time.perf_counter()
    work()
    taken = time.perf_counter() - start
    return min(50, max(1, math.ceil(SECONDS / max(taken, 1e-6))))


def _lengths(subject: Subject, lengths: Sequence[int]) -> tuple[list[int], tuple[str, ...]]:
    """The lengths that the model takes, and a word on the others."""
    taken, notes = [], []
    for length in lengths:
        try:
            trial_inputs(subject, length, 1)
            taken.append(length)
        except UsageError as error:
            notes.append(str(error))
    if not taken:
        raise UsageError(notes[0] if notes else "There is no length to measure; give one or more.")
    return taken, tuple(notes)


def _check(whole: Subject, small: Subject, pairs: int) -> None:
    check_pairs(pairs)
    for what, one, other in _shared(whole, small):
        if one != other:
            raise UsageError(
                f"{whole.name} and {small.name} differ in {what} ({one} and {other}), so their "
                "speeds cannot be compared; load both alike."
            )


def _shared(whole: Subject, small: Subject) -> Iterator[tuple[str, Any, Any]]:
    yield "device", whole.device, small.device
    yield "dtype", whole.dtype, small.dtype
    yield "kind", whole.kind, small.kind


def _about(subject: Subject, pairs: int, way: Way) -> dict[str, Any]:
    device = subject.device
    on_gpu = device.type == "cuda"
    return {
        "device": torch.cuda.get_device_name(device) if on_gpu else "CPU",
        "dtype": str(subject.dtype).removeprefix("torch."),
        "threads": "" if on_gpu else f"threads: {torch.get_num_threads()}",
        "way": {"plain": "as it is", "graph": "CUDA graphs", "compile": "compiled"}[way],
        "pairs": f"{pairs} pairs in turn",
    }
