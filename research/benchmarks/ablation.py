"""Ablation of every head alone, against L*H+1 whole evaluations; the floor is printed beside it.

Both sides at their best batch size, tokenising outside both, in turns. The floor is the share of
matrix products that no re-run can do without (`research/benchmarks/flops.py`).
`python -m research.benchmarks.ablation` writes `results/ablation.json`; `--quick` tries it small.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch

from headcount import tasks
from headcount.bundle import sample
from headcount.importance.sweeps.interventions import Intervention, single_heads
from headcount.importance.sweeps.sweeping import sweep
from headcount.models.guards import eval_mode
from headcount.models.loading import load
from headcount.models.subject import Subject
from headcount.records import provenance
from headcount.tasks.task import Task
from headcount.wiring import valve
from research.benchmarks.flops import floor, forward_cost
from research.benchmarks.interleave import interleaved, ratio

RESULTS = Path(__file__).parent / "results"
ROUNDS = 5


@dataclass(frozen=True)
class Case:
    """A model, a task for it, and the sizes of batches to choose from."""

    name: str
    build: Callable[[], tuple[Subject, Task]]
    sizes: Sequence[int]
    #: What product.md says of the floor.
    expected: float


def naive(subject: Subject, task: Task, heads: Sequence[Intervention], size: int) -> list[float]:
    """The loop that anybody would write: shut a head, evaluate, open it again."""
    batches = list(task.batches(subject, size))
    values = [task.evaluate(subject, batches=batches).value]
    for one in heads:
        with valve(subject, dict.fromkeys(one.heads, 0.0)):
            values.append(task.evaluate(subject, batches=batches).value)
    return values


def swept(subject: Subject, task: Task, heads: Sequence[Intervention], size: int) -> list[float]:
    """The sweep."""
    found = sweep(subject, task, heads, batch_size=size)
    assert found.fast
    return [found.baseline.value, *(outcome.value for outcome in found.outcomes)]


def words(count: int, length: int) -> list[str]:
    """Texts of that many words, of about a token each."""
    noise = torch.Generator().manual_seed(0)
    common = ["the", "house", "water", "small", "went", "over", "green", "time", "hand", "light"]
    picks = torch.randint(len(common), (count, length), generator=noise).tolist()
    return [" ".join(common[pick] for pick in row) for row in picks]


def minilm() -> tuple[Subject, Task]:
    """Sixteen pairs of 128 tokens."""
    texts = words(32, 126)
    pairs = [(a, b, float(n)) for n, (a, b) in enumerate(zip(texts[::2], texts[1::2], strict=True))]
    return load("minilm", device="cpu", dtype="float32"), tasks.similarity(pairs, metric="loss")


def translator() -> tuple[Subject, Task]:
    """The bundled pairs."""
    task = tasks.translation(sample.pairs()[:64], metric="loss")
    return load("translator", device="cpu"), task


def smollm2() -> tuple[Subject, Task]:
    """Four texts of 128 tokens."""
    return load("smollm2", device="cpu", dtype="float32"), tasks.lm(words(4, 128))


CASES = [
    Case("minilm", minilm, (8, 16), 0.52),
    Case("translator", translator, (16, 32, 64), 0.55),
    Case("smollm2", smollm2, (2, 4), 0.61),
]


def best_size(work: Callable[[int], Any], sizes: Sequence[int]) -> int:
    """The batch size that is fastest."""
    seconds = interleaved({str(size): partial(work, size) for size in sizes}, 2, warm_up=1)
    return int(min(seconds, key=lambda size: min(seconds[size])))


def measure(case: Case, every: int, rounds: int) -> dict[str, Any]:
    """One case; with `every` above 1, every so many heads of each layer only."""
    subject, task = case.build()
    heads = single_heads(subject.anatomy)[::every]
    few = heads[:: max(1, len(heads) // 8)]
    best = {
        "naive": best_size(lambda size: naive(subject, task, few, size), case.sizes),
        "sweep": best_size(lambda size: swept(subject, task, few, size), case.sizes),
    }
    one, other = (way(subject, task, few, best["sweep"]) for way in (naive, swept))
    seconds = interleaved(
        {
            "naive": lambda: naive(subject, task, heads, best["naive"]),
            "sweep": lambda: swept(subject, task, heads, best["sweep"]),
        },
        rounds,
        warm_up=0,
    )
    least = _floor(subject, task, best["sweep"], heads)
    told = ratio(seconds, "sweep", "naive") if rounds > 1 else _single(seconds)
    return {
        "heads": len(heads),
        "examples": len(task),
        "batch_size": best,
        "seconds": {name: round(statistics.median(times), 3) for name, times in seconds.items()},
        "ratio": told,
        "floor": {name: round(value, 4) for name, value in least.items()},
        "over_floor": round(told["median"] / least["re-run"], 3),
        "aim": {"floor": case.expected, "over_floor": 1.08},
        "largest_difference": max(abs(a - b) for a, b in zip(one, other, strict=True)),
    }


def _floor(
    subject: Subject, task: Task, size: int, heads: Sequence[Intervention]
) -> dict[str, float]:
    """The floor on the task's own batches, and with the cross projections run anew each time."""
    batch = next(iter(task.batches(subject, size)))
    with eval_mode(subject.model):
        cost, course = forward_cost(subject, batch)
    sites = [subject.anatomy.site(*one.heads[0][:2]) for one in heads]
    counted = Counter(sites)
    return {
        "re-run": floor(cost, course, counted),
        "re-run, cross keys and values anew": floor(cost, course, counted, cross_once=False),
    }


def _single(seconds: dict[str, list[float]]) -> dict[str, float]:
    return {"median": round(seconds["sweep"][0] / seconds["naive"][0], 3)}


def main() -> None:
    """Measure every case, or those named."""
    quick = "--quick" in sys.argv
    named = [word for word in sys.argv[1:] if not word.startswith("--")]
    torch.set_num_threads(1 if quick else 2)
    cases = [case for case in CASES if not named or case.name in named]
    found = {}
    for case in cases:
        found[case.name] = measure(case, every=6 if quick else 1, rounds=1 if quick else ROUNDS)
        print(case.name, json.dumps(found[case.name], indent=2), flush=True)
    if quick or named:
        return
    about = provenance.collect() | {"command": "python -m research.benchmarks.ablation"}
    result = {"what": "every head ablated alone, loss, float32 on CPU, 2 threads", **found}
    RESULTS.mkdir(exist_ok=True)
    text = json.dumps(result | {"rounds": ROUNDS, "provenance": about}, indent=2)
    (RESULTS / "ablation.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
