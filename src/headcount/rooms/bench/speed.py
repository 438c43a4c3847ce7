"""How much faster a pruned model is: gains, the limit by operations, time by part.

Michel et al. 2019, table 4, with real removal: not masks, which save nothing. Both models are timed
in turns, and gains are medians with intervals.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt
import torch
from scipy.special import bdtr

from headcount.errors import UsageError
from headcount.models import (
    Subject,
    attention_configs,
    eval_mode,
    first_line,
    out_of_memory,
    quiet,
    switched,
)
from headcount.records import Head, working
from headcount.rooms.bench.costs import ModelCosts, model_costs, part_times, trial_inputs
from headcount.stats import Interval

# --- One measured pair of speeds ----------------------------------------------------------------


@dataclass(frozen=True)
class Leak:
    """Why a forward is not as much faster as it has fewer operations; shares of the whole's time.

    `limit` is the time that should be saved if time went with operations only, `saved` what was.
    `elsewhere` is what the limit takes for granted: part of the time multiplies no matrices, and
    matrices run at different rates. `slower` says for each part how much more it takes than its
    own operations would: smaller matrices keep a machine less busy.
    """

    limit: float
    saved: float
    elsewhere: float
    slower: dict[str, float]


@dataclass(frozen=True)
class Speed:
    """A whole and a pruned model in turns, at one batch size and one length."""

    batch: int
    length: int
    #: Medians, in seconds of one forward.
    whole: float
    small: float
    #: The median of the pairs' ratios less 1, with its interval: 0.15 is 15% more examples.
    gain: float
    low: float
    high: float
    #: The gain if time went with operations.
    limit: float
    pairs: int
    #: Seconds by part, from a run of their own with hooks; empty where they were not timed.
    whole_parts: dict[str, float]
    small_parts: dict[str, float]
    leak: Leak | None

    @property
    def throughput(self) -> tuple[float, float]:
        """Examples a second, whole and pruned."""
        return self.batch / self.whole, self.batch / self.small

    @property
    def noisy(self) -> bool:
        """Whether the gain is not significant: its interval contains 0."""
        return self.low <= 0 <= self.high

    @property
    def reached(self) -> float:
        """The share of the limit that was measured; NaN where no gain is significant."""
        return self.gain / self.limit if self.limit > 0 and self.low > 0 else float("nan")

    def to_json(self) -> dict[str, Any]:
        """Everything as plain numbers."""
        one, other = self.throughput
        derived = {"whole_per_second": one, "small_per_second": other, "reached": self.reached}
        return asdict(self) | derived


def speed_of(
    seconds: tuple[Sequence[float], Sequence[float]],
    costs: tuple[ModelCosts, ModelCosts],
    parts: Sequence[dict[str, float]] | None,
) -> Speed:
    """Sum up the pairs of one batch size and length."""
    whole, small = (np.asarray(times, dtype=np.float64) for times in seconds)
    gain, low, high = (float(number) - 1 for number in median_interval(whole / small))
    one, other = parts or ({}, {})
    return Speed(
        batch=costs[0].batch,
        length=costs[0].tokens,
        whole=float(np.median(whole)),
        small=float(np.median(small)),
        gain=gain,
        low=low,
        high=high,
        limit=costs[0].flops / costs[1].flops - 1,
        pairs=len(whole),
        whole_parts=one,
        small_parts=other,
        leak=_leak(costs, one, other) if parts else None,
    )


def _leak(
    costs: tuple[ModelCosts, ModelCosts], one: dict[str, float], other: dict[str, float]
) -> Leak:
    """What is saved, against what operations promise, part by part.

    Every part of the whole model's time, shrunk as its own operations shrink, would give
    `expected`; the rest of the time, which has none, stays.
    """
    total = sum(one.values())
    before, after = (cost.parts for cost in costs)
    expected = {
        part: taken * (after[part] / before[part] if before.get(part) else 1.0)  # type: ignore[index,call-overload]
        for part, taken in one.items()
    }
    ideal = total * costs[1].flops / costs[0].flops
    return Leak(
        limit=(total - ideal) / total,
        saved=(total - sum(other.values())) / total,
        elsewhere=(sum(expected.values()) - ideal) / total,
        slower={part: (other[part] - expected[part]) / total for part in one},
    )


# --- The speed report ---------------------------------------------------------------------------


@dataclass(frozen=True)
class SpeedReport:
    """Two models compared (Michel et al. 2019, table 4); `print` shows it as a table."""

    whole: str
    small: str
    #: Heads of each.
    heads: tuple[int, int]
    #: At the longest length, one row.
    costs: tuple[ModelCosts, ModelCosts]
    speeds: tuple[Speed, ...]
    #: Device, dtype, threads, and how the forwards were run.
    about: dict[str, Any]
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Everything as plain words and numbers."""
        lists = {"heads": list(self.heads), "notes": list(self.notes)}
        lists |= {"costs": [cost.to_json() for cost in self.costs]}
        return {**vars(self), **lists, "speeds": [speed.to_json() for speed in self.speeds]}

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        yield f"whole   {self.whole}"
        yield f"pruned  {self.small}"
        yield ", ".join(str(value) for value in self.about.values() if value)
        yield ""
        yield from self._costs()
        yield ""
        yield f"{'batch':>5} {'tokens':>6} {'whole/s':>10} {'pruned/s':>10}   gain [95%]" + (
            f"{'limit':>20} {'reached':>9}"
        )
        for speed in self.speeds:
            one, other = speed.throughput
            gain = f"{_percent(speed.gain)} [{_percent(speed.low)}, {_percent(speed.high)}]"
            reached = f"{speed.reached:.2f}" if speed.low > 0 else "slower"
            yield (
                f"{speed.batch:5} {speed.length:6} {one:10.1f} {other:10.1f}   {gain:24}"
                f"{_percent(speed.limit):>6} {'too noisy' if speed.noisy else reached:>9}"
            )
        noisy = [speed for speed in self.speeds if speed.noisy]
        if noisy:
            yield ""
            yield (
                f"Too noisy to tell, in {len(noisy)} of {len(self.speeds)} rows: the gain's "
                "interval has 0 in it, so these pairs show neither a gain nor a loss. Take more "
                f"of them (--pairs {4 * noisy[0].pairs}), larger batches or longer texts "
                "(--timing), and let nothing else run."
            )
        timed = [speed for speed in self.speeds if speed.leak is not None]
        if timed:
            yield ""
            yield from _where(max(timed, key=lambda speed: speed.batch * speed.length))
        for note in self.notes:
            yield ""
            yield note

    def _costs(self) -> Iterator[str]:
        one, other = self.costs
        yield f"{'':24}{'whole':>16}{'pruned':>16}"
        rows: list[tuple[str, float, float]] = [
            ("heads", *self.heads),
            ("parameters", one.parameters, other.parameters),
            ("of attention", one.attention_parameters, other.attention_parameters),
            (f"MFLOPs, {one.tokens} tokens", one.flops / 1e6, other.flops / 1e6),
            ("cache, bytes a token", one.kv_bytes, other.kv_bytes),
            ("and a source token", one.source_kv_bytes, other.source_kv_bytes),
        ]
        for name, before, after in rows:
            if before:  # an encoder has no cache
                yield f"{name:24}{before:16,.0f}{after:16,.0f}  {_percent(after / before - 1)}"


def _where(speed: Speed) -> Iterator[str]:
    """Where the rest of the gain went, in a table and in words."""
    leak = speed.leak
    assert leak is not None
    yield f"Where the time goes, batch {speed.batch}, {speed.length} tokens, in milliseconds"
    yield f"{'':14}{'whole':>9}{'pruned':>9}{'share':>8}{'beyond its operations':>23}"
    total = sum(speed.whole_parts.values())
    for part, taken in speed.whole_parts.items():
        yield (
            f"{part:14}{1e3 * taken:9.2f}{1e3 * speed.small_parts[part]:9.2f}"
            f"{100 * taken / total:7.0f}%{100 * leak.slower[part]:22.1f}%"
        )
    if speed.noisy:  # the rest would be noise too
        return
    slower = sum(leak.slower.values())
    yield (
        f"Operations alone would save {100 * leak.limit:.1f}% of the time; {100 * leak.saved:.1f}% "
        f"was saved. Of the difference, {100 * leak.elsewhere:.1f} points are time that holds no "
        f"operations of the heads, and {100 * slower:.1f} points are parts that run slower than "
        "their own operations say (below 0: faster)."
    )


def _percent(share: float) -> str:
    return f"{100 * share:+.1f}%"


# --- Time two or more ways of doing the same work in turns --------------------------------------

Work = Callable[[], object]


def interleaved(ways: Mapping[str, Work], rounds: int, warm_up: int = 2) -> dict[str, list[float]]:
    """Seconds of each way, round by round; every other round goes backwards.

    >>> found = interleaved({"one": lambda: None, "two": lambda: None}, rounds=3)
    >>> {name: len(seconds) for name, seconds in found.items()}
    {'one': 3, 'two': 3}
    """
    for _ in range(warm_up):
        for work in ways.values():
            work()
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(rounds):
        names = list(ways) if number % 2 == 0 else list(ways)[::-1]
        for name in names:
            start = time.perf_counter()
            ways[name]()
            seconds[name].append(time.perf_counter() - start)
    return seconds


# --- What can be timed --------------------------------------------------------------------------

Way = Literal["plain", "graph", "compile"]
WAYS: tuple[Way, ...] = get_args(Way)

#: Pairs below which the median has no interval at 95%.
LEAST = 6


def check_timing(pairs: int, way: str, share: float = 0.5) -> None:
    """Refuse what cannot be timed: too few pairs, an unknown way, a share of no head or of all.

    >>> check_timing(5, "plain")
    Traceback (most recent call last):
    headcount.errors.UsageError: 5 pairs give no interval; take 6 or more.
    """
    if pairs < LEAST:
        raise UsageError(f"{pairs} pairs give no interval; take {LEAST} or more.")
    if way not in WAYS:
        raise UsageError(f"There is no way '{way}' to run a forward; choose {', '.join(WAYS)}.")
    if not 0 < share < 1:
        raise UsageError(f"The share of heads is {share:g}; give a number between 0 and 1.")


# --- A forward made ready for the clock ---------------------------------------------------------


def ready(subject: Subject, inputs: dict[str, Any], way: Way, repeats: int = 1) -> Work:
    """A function without arguments that runs the forward N times."""
    once = _forward(subject, inputs, way)
    if way != "plain" and subject.device.type == "cuda":
        once = _recorded(subject, once)

    def work() -> None:
        for _ in range(repeats):
            once()
        if subject.device.type == "cuda":  # a GPU's queue is not its work
            torch.cuda.synchronize(subject.device)

    return work


#: How a model is compiled for a GPU: with weights that stay as they are, so that queries, keys and
#: values are one product (half of three narrow products takes 0.7 of their time, half of a wide one
#: half), and with its other kernels tuned, which take a quarter of the time of either model.
_SERVED: Any = {"freezing": True, "coordinate_descent_tuning": True}


def _forward(subject: Subject, inputs: dict[str, Any], way: Way) -> Work:
    model = subject.model
    if way == "compile":
        options = _SERVED if subject.device.type == "cuda" else None
        model = torch.compile(model, dynamic=False, options=options)

    def forward() -> object:
        with torch.inference_mode() if way == "plain" else torch.no_grad():
            return model(**inputs)

    return forward


def _recorded(subject: Subject, work: Work) -> Work:
    """Record one forward as a CUDA graph; to replay it, Python launches nothing but the whole.

    Compiled forwards too: what torch's own recording leaves to Python, the look whether the
    compiled code still fits, takes up to a millisecond a call.
    """
    try:
        with torch.cuda.device(subject.device):
            side = torch.cuda.Stream()
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                for _ in range(3):
                    work()
            torch.cuda.current_stream().wait_stream(side)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, stream=side):
                work()
    except (RuntimeError, AssertionError) as error:
        if out_of_memory(error):
            raise
        raise UsageError(
            f"The forward of {subject.name} cannot be recorded as a CUDA graph "
            f"({first_line(error).rstrip('.')}); time it as it is (--timing way=plain)."
        ) from error
    return partial(_replayed, graph, work)


def _replayed(graph: torch.cuda.CUDAGraph, work: Work) -> None:
    """Replay; `work` comes along, since a replay reads the memory that it holds."""
    graph.replay()


#: An attention implementation that transformers makes no mask for.
_FULL_ROWS = "headcount-full-rows"


@contextmanager
def _full_rows(subject: Subject) -> Iterator[None]:
    """Within the block no mask is made, since the timed rows have no padding.

    A forward that is recorded or compiled cannot look whether a mask says anything, so that
    transformers makes one, and torch attends by its slowest kernel: the whole model, with more
    attention in it, would lose more by that than the pruned one.
    """
    from transformers import AttentionInterface
    from transformers.integrations import sdpa_attention

    configs = attention_configs(subject.model)
    names = {getattr(config, "_attn_implementation", None) for config in configs}
    windows = any(getattr(config, "sliding_window", None) for config in configs)
    if names != {"sdpa"} or windows:
        yield
        return
    AttentionInterface.register(_FULL_ROWS, sdpa_attention.sdpa_attention_forward)
    with switched(subject.model, lambda own: _FULL_ROWS):
        yield


# --- Measured latency and throughput of a pruned and a whole model ------------------------------

BATCHES, LENGTHS, PAIRS = (1, 4, 16, 64), (32, 128, 512), 15
#: Forwards that take less than this are repeated: a clock has its own grain, and a GPU is given
#: the next batch before it is done with the last, as when it serves.
SECONDS = {"cpu": 0.005, "cuda": 0.05}


def latency(
    whole: Subject,
    small: Subject,
    *,
    batches: Sequence[int] = BATCHES,
    lengths: Sequence[int] = LENGTHS,
    pairs: int = PAIRS,
    way: Way = "plain",
    parts: bool = True,
) -> SpeedReport:
    """Time forwards of two models in turns: gains with intervals, limits, time by part.

    `way` is "plain", "graph" (CUDA graphs) or "compile" (with CUDA graphs on a GPU), for both
    models alike. `parts` times the
    parts of a forward too, always plainly. Lengths that the model does not take are left out,
    with a note.
    """
    check_timing(pairs, way)
    if way == "graph" and whole.device.type != "cuda":
        raise UsageError(
            f"A forward is recorded as a CUDA graph, and the model is on {whole.device}; use "
            "--device cuda, or the way plain or compile."
        )
    for what in ("device", "dtype", "kind"):
        one, other = getattr(whole, what), getattr(small, what)
        if one != other:
            raise UsageError(
                f"{whole.name} and {small.name} differ in {what} ({one} and {other}), so their "
                "speeds cannot be compared; load both alike."
            )
    wanted, notes = _lengths(whole, lengths)
    cells = [(batch, length) for length in wanted for batch in batches]
    speeds = []
    with ExitStack() as stack, working("Timing", len(cells)) as shown:
        stack.enter_context(quiet())
        for subject in (whole, small):
            stack.enter_context(eval_mode(subject.model))
            if way != "plain":
                stack.enter_context(_full_rows(subject))
        for cell in cells:
            speeds.append(_measured(whole, small, *cell, pairs, way, parts))
            shown()
    longest = max(wanted)
    return SpeedReport(
        whole=whole.name,
        small=small.name,
        heads=(len(whole.heads), len(small.heads)),
        costs=(model_costs(whole, longest), model_costs(small, longest)),
        speeds=tuple(speeds),
        about=_about(whole, pairs, way),
        notes=notes,
    )


def _measured(
    whole: Subject, small: Subject, batch: int, length: int, pairs: int, way: Way, parts: bool
) -> Speed:
    if way == "compile":  # torch gives up on a function that it has compiled eight times
        torch._dynamo.reset()
    inputs = trial_inputs(whole, length, batch)
    once = ready(whole, inputs, "plain")
    once()
    start = time.perf_counter()
    once()
    taken = max(time.perf_counter() - start, 1e-6)
    least = SECONDS.get(whole.device.type, SECONDS["cpu"])
    repeats = min(50, max(1, math.ceil(least / taken)))
    subjects = {"whole": whole, "small": small}
    works = {name: ready(one, inputs, way, repeats) for name, one in subjects.items()}
    seconds = interleaved(works, pairs)
    one, other = ([taken / repeats for taken in seconds[name]] for name in subjects)
    costs = model_costs(whole, length, batch), model_costs(small, length, batch)
    timed = part_times([whole, small], inputs) if parts else None
    return speed_of((one, other), costs, timed)


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


def _about(subject: Subject, pairs: int, way: Way) -> dict[str, Any]:
    on_gpu = subject.device.type == "cuda"
    return {
        "device": torch.cuda.get_device_name(subject.device) if on_gpu else "CPU",
        "dtype": str(subject.dtype).removeprefix("torch."),
        "threads": "" if on_gpu else f"threads: {torch.get_num_threads()}",
        "way": {"plain": "as it is", "graph": "CUDA graphs", "compile": "compiled"}[way],
        "pairs": f"{pairs} pairs in turn",
    }


# --- As many heads from every layer -------------------------------------------------------------


def even_heads(subject: Subject, share: float = 0.5) -> list[Head]:
    """The last share of the heads of every layer, in whole groups that share keys and values.

    >>> from transformers import BertConfig, BertModel
    >>> config = BertConfig(hidden_size=16, num_hidden_layers=1, num_attention_heads=4,
    ...                     intermediate_size=16, vocab_size=32)
    >>> [str(head) for head in even_heads(Subject(BertModel(config)))]
    ['enc.0.2', 'enc.0.3']
    """
    check_timing(LEAST, "plain", share)
    going = []
    for site in subject.anatomy.sites:
        groups = round(site.kv_heads * share)
        size = site.heads // site.kv_heads
        going += site.names[len(site.names) - min(groups, site.kv_heads - 1) * size :]
    if not going:
        raise UsageError(
            f"{subject.name} has no layer from which {share:.0%} of the heads can be cut; give a "
            "larger share, or a model that was pruned."
        )
    return going


def median_interval(values: npt.ArrayLike) -> Interval:
    """The median of values ``[value]``; the ends are two of the values themselves.

    Conover 1999, section 3.2: as many values lie below the median as heads fall in coin tosses.
    NaN ends where even the outermost values are too near, below 6 values at 95%.

    >>> [float(number) for number in median_interval([3, 1, 2, 5, 4, 6, 20])]
    [4.0, 1.0, 20.0]
    """
    ordered = np.sort(np.asarray(values, dtype=float).ravel())
    count = len(ordered)
    cut = int(np.sum(bdtr(np.arange(count), count, 0.5) <= 0.025)) if count else 0
    middle = np.asarray(np.median(ordered) if count else np.nan)[()]
    if not cut:
        return Interval(middle, np.asarray(np.nan)[()], np.asarray(np.nan)[()])
    return Interval(middle, ordered[cut - 1], ordered[count - cut])
