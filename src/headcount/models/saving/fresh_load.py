"""Run in a separate process: load saved models as other programs do, and compare outputs.

Takes a file of jobs, prints one line of JSON: for each job how far apart the outputs are, first
through transformers only, then through `headcount.load`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any


def _apart(model: Any, job: dict[str, Any]) -> float:
    import torch
    from safetensors.torch import load_file

    tensors = load_file(job["tensors"], device=job["device"])
    wanted = tensors.pop("output")
    with torch.no_grad():
        got = model.eval()(**tensors, **job["arguments"])[0]
    largest = wanted.double().abs().max().clamp_min(1e-30)
    return float((got.double() - wanted.double()).abs().max() / largest)


def _by_transformers(job: dict[str, Any]) -> float:
    import torch
    import transformers

    loader = getattr(transformers, job["loader"])
    trust = {"trust_remote_code": True} if job["code"] else {}
    model = loader.from_pretrained(job["folder"], dtype=getattr(torch, job["dtype"]), **trust)
    return _apart(model.to(job["device"]), job)


def _by_headcount(job: dict[str, Any]) -> float:
    from headcount.models.loading import load

    subject = load(job["folder"], device=job["device"], dtype=job["dtype"])
    found = [str(head) for head in subject.heads]
    if found != job["heads"]:
        raise ValueError(f"heads are called {found[:5]}..., not {job['heads'][:5]}...")
    return _apart(subject.model, job)


def run_jobs() -> None:
    """Do all jobs; a failure is a message for the caller."""
    jobs = json.loads(Path(sys.argv[1]).read_text(encoding="utf8"))
    results: list[dict[str, Any]] = []
    for job in jobs:
        try:
            results.append({"plain": _by_transformers(job), "own": _by_headcount(job)})
        except Exception as error:
            results.append({"error": f"{type(error).__name__}: {error}"})
    print(json.dumps(results))


if __name__ == "__main__":
    run_jobs()
