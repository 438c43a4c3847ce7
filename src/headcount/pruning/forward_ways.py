"""A forward made ready for the clock: as it is, recorded as a CUDA graph, or compiled."""

from __future__ import annotations

from typing import Any

import torch

from headcount.errors import UsageError
from headcount.pruning.bench_options import WAYS, Way, check_way_name
from headcount.pruning.interleave import Work, waited
from headcount.subject import Subject

__all__ = ["WAYS", "Way", "check_way", "ready"]


def check_way(way: str, device: torch.device) -> None:
    """Refuse a way that does not exist, or that the device does not know."""
    check_way_name(way)
    if way == "graph" and device.type != "cuda":
        raise UsageError(
            f"A forward is recorded as a CUDA graph, and the model lies on {device}; use --device "
            "cuda, or the way plain or compile."
        )


def ready(subject: Subject, inputs: dict[str, Any], way: Way, repeats: int = 1) -> Work:
    """A function without arguments that runs the forward, so many times over, to its end."""
    once = {"plain": _plain, "graph": _graph, "compile": _compiled}[way](subject, inputs)

    def work() -> None:
        for _ in range(repeats):
            once()

    return waited(work, subject.device)


def _plain(subject: Subject, inputs: dict[str, Any]) -> Work:
    def forward() -> object:
        with torch.inference_mode():
            return subject.model(**inputs)

    return forward


def _compiled(subject: Subject, inputs: dict[str, Any]) -> Work:
    model = torch.compile(subject.model, dynamic=False)

    def forward() -> object:
        with torch.no_grad():
            return model(**inputs)

    return forward


def _graph(subject: Subject, inputs: dict[str, Any]) -> Work:
    """Record one forward; replaying it costs no launch of single kernels."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side), torch.no_grad():
        for _ in range(3):
            subject.model(**inputs)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph), torch.no_grad():
        subject.model(**inputs)
    return graph.replay
