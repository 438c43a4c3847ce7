"""Where the time of a forward goes: projections, maps, feed-forward layers, ends, and the rest.

The rest is what multiplies no matrices: norms, activations, sums, embeddings, Python itself.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

import torch
from torch import nn

from headcount.models.rest import at_rest
from headcount.pruning.parts import PARTS, Parts, parts_of
from headcount.subject import Subject

__all__ = ["part_times"]

#: A moment, and how far two of them are apart in seconds, once the device has come to rest.
Mark = Any
Apart = Callable[[Mark, Mark], float]


def part_times(
    subjects: Sequence[Subject], inputs: dict[str, Any], rounds: int = 5
) -> list[dict[str, float]]:
    """Seconds of one forward of each model by part, timed in turns with hooks at the parts.

    >>> from transformers import BertConfig, BertModel
    >>> config = BertConfig(hidden_size=16, num_hidden_layers=1, num_attention_heads=4,
    ...                     intermediate_size=16, vocab_size=32)
    >>> inputs = {"input_ids": torch.ones(1, 4).long()}
    >>> list(part_times([Subject(BertModel(config))], inputs)[0])
    ['projections', 'maps', 'feed-forward', 'ends', 'rest']
    """
    parts = [parts_of(subject) for subject in subjects]
    rows: list[list[dict[str, float]]] = [[] for _ in subjects]
    for number in range(rounds + 1):
        for place, subject in enumerate(subjects):
            found = _one(subject, parts[place], inputs)
            if number:  # the first one warms up
                rows[place].append(found)
    return [_medians(each) for each in rows]


def _one(subject: Subject, parts: Parts, inputs: dict[str, Any]) -> dict[str, float]:
    """The seconds of a single forward."""
    mark, apart = _clock(subject.device)
    taken: list[tuple[str, Mark, Mark]] = []
    with ExitStack() as stack:
        stack.enter_context(at_rest(subject.model))
        stack.enter_context(torch.inference_mode())
        for module, name in _names(parts).items():
            _watch(stack, module, name, mark, taken)
        start = mark()
        subject.model(**inputs)
        end = mark()
    if subject.device.type == "cuda":
        torch.cuda.synchronize(subject.device)
    return _shared_out(taken, apart(start, end), apart)


def _medians(rows: list[dict[str, float]]) -> dict[str, float]:
    return {part: statistics.median(row[part] for row in rows) for part in rows[0]}


def _names(parts: Parts) -> dict[nn.Module, str]:
    """What each watched module is counted under; a projection inside its attention is told so."""
    names: dict[nn.Module, str] = dict.fromkeys(parts.attention, "attention")
    for module, part in parts.matrices.items():
        names[module] = f"inner {part}" if module in parts.inner else part
    return names


def _watch(
    stack: ExitStack,
    module: nn.Module,
    name: str,
    mark: Callable[[], Mark],
    taken: list[tuple[str, Mark, Mark]],
) -> None:
    started: list[Mark] = []
    enter = module.register_forward_pre_hook(lambda *_: started.append(mark()))
    leave = module.register_forward_hook(lambda *_: taken.append((name, started.pop(), mark())))
    stack.callback(enter.remove)
    stack.callback(leave.remove)


def _clock(device: torch.device) -> tuple[Callable[[], Mark], Apart]:
    if device.type != "cuda":
        return time.perf_counter, lambda start, end: float(end - start)

    def mark() -> torch.cuda.Event:
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    return mark, lambda start, end: float(start.elapsed_time(end)) / 1e3


def _shared_out(
    taken: list[tuple[str, Mark, Mark]], total: float, apart: Apart
) -> dict[str, float]:
    """Seconds by part; an attention's own are those that its projections do not take."""
    sums: dict[str, float] = {}
    for name, start, end in taken:
        sums[name] = sums.get(name, 0.0) + apart(start, end)
    inner = sums.pop("inner projections", 0.0)
    found: dict[str, float] = {part: sums.get(part, 0.0) for part in PARTS}
    found["projections"] += inner
    found["maps"] = max(0.0, sums.get("attention", 0.0) - inner)
    found["rest"] = max(0.0, total - sum(found.values()))
    return found
