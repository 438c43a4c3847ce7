"""A model without some heads trained on for a while; on a GPU the step is recorded and replayed.

The heads are shut, not cut: their weights get no gradient and change nothing, so that one recording
serves every set of heads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from headcount.models.subject import Subject
from headcount.wiring.valves import Valve, valve
from research.glue.finetune import rate_at

from .config import Healing

__all__ = ["Healer", "healing"]

_WARM = 3
Loss = Callable[[Tensor], Tensor]


@contextmanager
def healing(
    subject: Subject, loss: Loss, settings: Healing, rows: int, record: bool
) -> Iterator[Healer]:
    """Within the block the subject is a learner; `loss` takes numbers of training rows."""
    device = subject.device
    with valve(subject, torch.ones(len(subject.heads), device=device)) as opened:
        yield Healer(subject, opened, loss, settings, rows, record)


class Healer:
    """Weights that start anew for every set of heads, and the step that moves them."""

    def __init__(
        self,
        subject: Subject,
        opened: Valve,
        loss: Loss,
        settings: Healing,
        rows: int,
        record: bool,
    ) -> None:
        self.subject, self.opened, self.loss = subject, opened, loss
        self.settings, self.total = settings, rows
        model, device = subject.model, subject.device
        self.start = {name: weight.detach().clone() for name, weight in model.named_parameters()}
        self.scales = torch.ones(len(subject.heads), device=device)
        self.rows = torch.zeros(settings.rows, dtype=torch.long, device=device)
        self.rate = torch.zeros((), device=device)
        self.optimizer = _optimizer(list(model.parameters()), self.rate)
        self.graph: torch.cuda.CUDAGraph | None = None
        self.note = "eager"
        opened.scales = self.scales
        if record and device.type == "cuda":
            self._record()

    def heal(self, gone: tuple[Any, ...], seed: int) -> None:
        """Train on without these heads, from the weights at the start; ends in eval mode."""
        shut = set(gone)
        there = torch.tensor([float(head not in shut) for head in self.subject.heads])
        self.scales.copy_(there)
        self._begin()
        self.subject.model.train()
        torch.manual_seed(seed)
        dice = torch.Generator().manual_seed(seed)
        steps = self.settings.steps
        drawn = _drawn(self.total, steps * self.settings.rows, dice).view(steps, -1)
        for step, rows in enumerate(drawn.to(self.rows.device)):
            self.rows.copy_(rows)
            self.rate.fill_(rate_at(step, steps, self.settings.rate, self.settings.warmup))
            if self.graph is None:
                self._work()
            else:
                self.graph.replay()
        self.subject.model.eval()

    def _begin(self) -> None:
        with torch.no_grad():
            for name, weight in self.subject.model.named_parameters():
                weight.copy_(self.start[name])
        for memory in self.optimizer.state.values():
            for tensor in memory.values():
                tensor.zero_()

    def _work(self) -> None:
        self.optimizer.zero_grad(set_to_none=True)
        self.loss(self.rows).backward()
        torch.nn.utils.clip_grad_norm_(self.subject.model.parameters(), 1.0)
        self.optimizer.step()

    def _record(self) -> None:
        """Record one step; where the model cannot be recorded, it is run step by step."""
        self.subject.model.train()
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(_WARM):
                self._work()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph):
                self._work()
        except RuntimeError as error:
            self.note = f"eager, not recorded: {str(error).splitlines()[0]}"
            print(self.note, flush=True)
            return
        self.graph, self.note = graph, "recorded"


def _drawn(total: int, wanted: int, dice: torch.Generator) -> Tensor:
    """So many row numbers, every row as often as any other, give or take one."""
    rounds = -(-wanted // total)
    return torch.cat([torch.randperm(total, generator=dice) for _ in range(rounds)])[:wanted]


def _optimizer(weights: list[Any], rate: Tensor) -> torch.optim.Optimizer:
    on_gpu = rate.is_cuda
    return torch.optim.AdamW(
        weights, lr=rate, eps=1e-6, weight_decay=0.0, fused=on_gpu, capturable=on_gpu
    )
