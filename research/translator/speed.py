"""How fast a step is: eager, recorded as a graph, compiled; what takes the time; is it exact?"""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from headcount.records.files import write_bytes

from .config import Config
from .prepare import Prepared, prepare
from .train import Run

__all__ = ["measure"]

_VARIANTS: dict[str, dict[str, Any]] = {
    "graph 256x96": {"rows": 256, "length": 96},
    "compiled 256x96": {"rows": 256, "length": 96, "compile": True},
    "compiled 256x96 twice": {"rows": 256, "length": 96, "compile": True, "agreement": 5.0},
    "compiled 384x64": {"rows": 384, "length": 64, "compile": True},
    "compiled 192x128": {"rows": 192, "length": 128, "compile": True},
}


def measure(config: Config, data: Path | None, out: Path, device: str) -> None:
    """Time every variant on the config's corpus and write `speed.json`."""
    out.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    prepared = prepare(replace(config, pieces=replace(config.pieces, versions=1)), data, out)
    found: dict[str, Any] = {"prepare_seconds": round(time.monotonic() - began, 1)}
    print(found, flush=True)
    for name, changes in _VARIANTS.items():
        try:
            found[name] = _time(_run(config, prepared, out, device, changes), steps=60)
        except Exception as error:  # one variant that fails must not cost the others their turn
            found[name] = {"failed": f"{type(error).__name__}: {error}"[:500]}
        print(name, found[name], flush=True)
        write_bytes(out / "speed.json", json.dumps(found, indent=1).encode())
    found["same twice"] = _same_twice(config, prepared, out, device)
    print("same twice", found["same twice"], flush=True)
    write_bytes(out / "speed.json", json.dumps(found, indent=1).encode())
    print(_heaviest(_run(config, prepared, out, device, {"compile": True})), flush=True)


def _run(
    config: Config, prepared: Prepared, out: Path, device: str, changes: dict[str, Any]
) -> Run:
    torch.compiler.reset()
    return Run(replace(config, train=replace(config.train, **changes)), prepared, out, device)


def _time(run: Run, steps: int) -> dict[str, Any]:
    began, layout = time.monotonic(), run.lay_epoch()
    run.model.train()
    if run.device == "cuda":
        run.stride.record(layout)
    _wait(run)
    ready, settings = time.monotonic(), run.settings
    steps = min(steps, run.batches)
    for number in range(steps):
        run.stride(layout, number)
    _wait(run)
    seconds = (time.monotonic() - ready) / steps
    _, plain, tokens = run.stride.sums.tolist()
    return {
        "record_seconds": round(ready - began, 1),
        "milliseconds_a_step": round(seconds * 1000, 2),
        "pairs_a_second": round(run.pairs_a_step / seconds),
        "target_tokens_a_step": round(tokens / steps),
        "fill": round(tokens / steps / settings.rows / settings.length, 3),
        "seconds_an_epoch": round(seconds * run.batches, 2),
        "loss": plain / tokens,
    }


def _same_twice(config: Config, prepared: Prepared, out: Path, device: str) -> dict[str, bool]:
    """Whether two runs from one seed end in the same bits, plain and compiled."""
    same = {}
    for compiled in (False, True):
        ends = []
        for _ in range(2):
            run = _run(config, prepared, out, device, {"compile": compiled})
            _time(run, steps=40)
            ends.append(run.weights.master.clone())
        same["compiled" if compiled else "graph"] = bool(torch.equal(*ends))
    return same


def _heaviest(run: Run) -> str:
    """The kernels that take the most time in an eager step."""
    layout = run.lay_epoch()
    run.model.train()
    for _ in range(2):
        run.stride(layout, 0)
    activities = [torch.profiler.ProfilerActivity.CUDA, torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=activities) as profile:
        run.stride(layout, 1)
        _wait(run)
    key = "self_cuda_time_total" if run.device == "cuda" else "self_cpu_time_total"
    return profile.key_averages().table(sort_by=key, row_limit=15, max_name_column_width=60)


def _wait(run: Run) -> None:
    if run.device == "cuda":
        torch.cuda.synchronize()
