"""Divergences of all pairs of heads against one head against all at a time in NumPy.

Maps are in memory on both sides, in float32, and one thread is used by both. The maps are those of
MiniLM on texts of 128 and 512 tokens, so that what is sparse is as sparse as in life. `python -m
research.benchmarks.divergence` writes `results/divergence.json`, with the least time that the one
product of all features may take: half of it, since it is symmetric, at the rate of a large product.
"""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import Any

import numpy as np
import torch
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from headcount.models.loading import load
from headcount.records import provenance
from headcount.rooms.families.divergence import gram, minus_divergence, table
from headcount.text.batch import ready_batch
from headcount.wiring import Needs, tap
from research.benchmarks.baselines.divergence_head_by_head import divergences
from research.benchmarks.interleave import interleaved, ratio
from research.benchmarks.lengths import limits

RESULTS = Path(__file__).parent / "results"
LENGTHS, ROUNDS = (128, 512), 7
THEIRS, OURS = "one head against all", "headcount"


def maps_of(length: int) -> torch.Tensor:
    """Every head's map of one text of so many tokens, `[head, query, key]`."""
    subject = load("minilm", device="cpu", dtype="float32")
    dice = torch.Generator().manual_seed(0)
    ids = torch.randint(1000, 20000, (1, length), generator=dice)
    ids[0, 0], ids[0, -1] = 101, 102
    with tap(subject, Needs(maps=True)) as watch:
        seen = watch(ready_batch({"input_ids": ids}, {"enc"}))
    return torch.cat([one.maps[0] for one in seen if one.maps is not None])


def ours(maps: torch.Tensor) -> np.ndarray:
    found = gram(maps)
    own = found.diagonal()
    return np.asarray((own[:, None] + own[None, :]) / 2 - found)


def measured(length: int, rounds: int, rate: float) -> dict[str, Any]:
    maps = maps_of(length)
    array = maps.numpy()
    exact = -minus_divergence(maps).numpy()
    apart = np.abs(ours(maps) - exact) / np.maximum(exact, 1e-9)
    off = ~np.eye(len(maps), dtype=bool)
    assert apart[off].max() < 1e-4, apart[off].max()
    np.testing.assert_allclose(divergences(array), exact, rtol=2e-3, atol=1e-3)
    ways = {THEIRS: lambda: divergences(array), OURS: lambda: gram(maps)}
    seconds = interleaved(ways, rounds, warm_up=1)
    least = len(maps) * (len(maps) + 1) * maps[0].numel() * table(length <= 512).shape[1] / rate
    return {
        "what": f"MiniLM, all pairs of 72 heads, {length} tokens, 1 thread",
        "aim": 20,
        "more": "better",
        "heads": len(maps),
        "seconds": {name: round(statistics.median(took), 4) for name, took in seconds.items()},
        "ratio": ratio(seconds, THEIRS, OURS),
        "least_seconds_of_the_product": round(least, 5),
        "largest_relative_error": float(apart[off].max()),
        "largest_relative_error_of_the_baseline": float(
            (np.abs(divergences(array) - exact) / np.maximum(exact, 1e-9))[off].max()
        ),
    }


def main(rounds: int = ROUNDS) -> None:
    torch.set_num_threads(1)
    with threadpool_limits(1):
        allowed = limits("cpu", torch.float32)
        rate = allowed["flops_per_s"]
        told = {str(length): measured(length, rounds, rate) for length in LENGTHS}
    result = {
        "what": "MiniLM float32 on CPU, all pairs of 72 heads, 1 thread, maps ready",
        "tokens": told,
        "limits": allowed,
        "rounds": rounds,
        "provenance": provenance.collect()
        | {"command": "python -m research.benchmarks.divergence"},
    }
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "divergence.json").write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps({k: v for k, v in result.items() if k != "provenance"}, indent=2))


if __name__ == "__main__":
    main()
