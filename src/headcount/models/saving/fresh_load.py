"""Run as a program of its own: load saved models as a stranger does, and compare what they say.

Takes a file of jobs, prints one line of JSON: for each job how far apart the outputs are, first
through transformers alone, then through `headcount.load`.
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


def _as_a_stranger(job: dict[str, Any]) -> float:
    import torch
    import transformers

    loader = getattr(transformers, job["loader"])
    trust = {"trust_remote_code": True} if job["code"] else {}
    model = loader.from_pretrained(job["folder"], dtype=getattr(torch, job["dtype"]), **trust)
    return _apart(model.to(job["device"]), job)


def _as_ourselves(job: dict[str, Any]) -> float:
    from headcount.models.load import load

    subject = load(job["folder"], device=job["device"], dtype=job["dtype"])
    found = [str(head) for head in subject.heads]
    if found != job["heads"]:
        raise ValueError(f"heads are called {found[:5]}..., not {job['heads'][:5]}...")
    return _apart(subject.model, job)


def run_jobs() -> None:
    """Do all jobs; a failure is told in words, for the caller to read."""
    jobs = json.loads(Path(sys.argv[1]).read_text(encoding="utf8"))
    told: list[dict[str, Any]] = []
    for job in jobs:
        try:
            told.append({"plain": _as_a_stranger(job), "own": _as_ourselves(job)})
        except Exception as error:
            told.append({"error": f"{type(error).__name__}: {error}"})
    print(json.dumps(told))


if __name__ == "__main__":
    run_jobs()
