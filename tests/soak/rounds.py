"""The same work again and again in one process: does anything grow, stay, or come out different?

Every round makes a model, surveys it, scores its heads and lets it go, so that the ids of freed
modules are given to new ones: a table by id that kept an entry would meet a stranger.
"""

from __future__ import annotations

import gc
import os
import sys
import tempfile
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
from headcount.surveys.shards import ShardWork

TEXTS = ["Rain fell on the tin roof.", "Two crows argued.", "She mends clocks, oddly.", "Go!"]
#: How often the state is looked at on the way.
_LOOKS = 12
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
    """A model made, surveyed, scored in three ways, and let go; the figures that came out.

    One survey and all scores are kept in files, which are opened, locked and closed.
    """
    subject = classifier()
    task = hc.tasks.classification(EXAMPLES)
    found = {"entropy": hc.survey(subject, TEXTS).frame["entropy"].tolist()}
    with tempfile.TemporaryDirectory() as folder:
        again = hc.survey(subject, TEXTS, run=ShardWork(folder=Path(folder, "shards")))
        found["self"] = again.frame["self"].tolist()
        for by in ("gradient", "ablation", "relevance"):
            table = hc.score(subject, task, by=by, run=Path(folder, by))
            found[by] = table.frame[by].tolist()
    try:
        with hc.valve(subject, {"enc.0.1": 0.0}), hc.tap(subject):
            raise KeyboardInterrupt
    except KeyboardInterrupt:
        pass
    return found


def soak(rounds: int, warm: int = 5, minutes: float = 0) -> dict[str, Any]:
    """Run so many rounds, and on until the minutes are over; what is there early, and later."""
    began = time.monotonic()
    first = work()
    for _ in range(warm - 1):
        work()
    before = state()
    kept = [{"round": warm, "minutes": 0.0, **asdict(before)}]
    done, different = warm, 0
    while done < rounds or time.monotonic() - began < minutes * 60:
        different += work() != first
        done += 1
        spent = (time.monotonic() - began) / 60
        share = min(done / rounds, spent / minutes if minutes else 1)
        if share * _LOOKS >= len(kept):
            kept.append({"round": done, "minutes": round(spent, 1), **asdict(state())})
    after = state()
    growth = {key: round(value - asdict(before)[key], 1) for key, value in asdict(after).items()}
    return {
        "rounds": done,
        "surveys": done * 2,
        "scores": done * 3,
        "seconds": round(time.monotonic() - began),
        "different_results": different,
        "looks": kept,
        "at_the_end": asdict(after),
        "growth": growth,
        "growth_megabytes_second_half": round(
            after.megabytes - kept[len(kept) // 2]["megabytes"], 1
        ),
    }
