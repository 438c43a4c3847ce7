"""The same work again and again in one process: does anything grow, stay, or come out different?

Every round makes a model, surveys it, scores its heads and lets it go, so that the ids of freed
modules are given to new ones: a table by id that kept an entry would meet a stranger.
"""

from __future__ import annotations

import gc
import os
import sys
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from tiny_subjects import classifier
from transformers import AttentionInterface
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

import headcount as hc

TEXTS = ["Rain fell on the tin roof.", "Two crows argued.", "She mends clocks, oddly.", "Go!"]
EXAMPLES = [(text, number % 2) for number, text in enumerate(TEXTS)]


@dataclass(frozen=True)
class State:
    """What could grow."""

    megabytes: float
    handles: int
    threads: int
    #: Hooks that hang on any module that is alive.
    hooks: int
    #: Modules of torch that are alive.
    modules: int
    #: Names of attention functions that transformers knows.
    functions: int
    #: Entries of all tables, lists and sets that headcount's modules keep.
    entries: int


def state() -> State:
    """What is there now, after a collection."""
    gc.collect()
    alive = [thing for thing in gc.get_objects() if issubclass(type(thing), torch.nn.Module)]
    hooks = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
    own = [module for name, module in list(sys.modules.items()) if name.startswith("headcount")]
    kept = {
        id(value): len(value)
        for module in own
        for name, value in vars(module).items()
        if isinstance(value, dict | list | set) and not name.startswith("__")
    }
    names = {*ALL_ATTENTION_FUNCTIONS.keys(), *AttentionInterface._global_mapping}
    return State(
        megabytes=round(_megabytes(), 1),
        handles=_handles(),
        threads=threading.active_count(),
        hooks=sum(len(getattr(module, kind)) for module in alive for kind in hooks),
        modules=len(alive),
        functions=len(names),
        entries=sum(kept.values()),
    )


def _megabytes() -> float:
    pages = Path("/proc/self/statm")
    return int(pages.read_text().split()[1]) * os.sysconf("SC_PAGESIZE") / 2**20


def _handles() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def work() -> dict[str, list[float]]:
    """A model made, surveyed, scored in three ways, and let go; the figures that came out."""
    subject = classifier()
    task = hc.tasks.classification(EXAMPLES)
    found = {name: hc.survey(subject, TEXTS).frame[name].tolist() for name in ("entropy", "self")}
    for by in ("gradient", "ablation", "relevance"):
        found[by] = hc.score(subject, task, by=by).frame[by].tolist()
    try:
        with hc.valve(subject, {"enc.0.1": 0.0}), hc.tap(subject):
            raise KeyboardInterrupt
    except KeyboardInterrupt:
        pass
    return found


def soak(rounds: int, warm: int = 5) -> dict[str, Any]:
    """Run so many rounds; what was there after the first few, and what at the end."""
    began = time.monotonic()
    first = work()
    for _ in range(warm - 1):
        work()
    before = state()
    middle = before
    different = 0
    for number in range(rounds - warm):
        different += work() != first
        if number == (rounds - warm) // 2:
            middle = state()
    after = state()
    growth = {key: round(value - asdict(before)[key], 1) for key, value in asdict(after).items()}
    return {
        "rounds": rounds,
        "surveys": rounds * 2,
        "scores": rounds * 3,
        "seconds": round(time.monotonic() - began),
        "different_results": different,
        f"after_{warm}": asdict(before),
        "in_the_middle": asdict(middle),
        "at_the_end": asdict(after),
        "growth": growth,
        "growth_megabytes_second_half": round(after.megabytes - middle.megabytes, 1),
    }
