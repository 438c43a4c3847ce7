"""One optimiser step; on a GPU it is recorded once for each width and then replayed."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

from .config import Train
from .encoded import Batch
from .model import draw_all, draw_head, logits_of

__all__ = ["Step", "loss_of"]

# Both give the same bits every time where PyTorch is told to; the others do not take our mask.
_ATTENTION = [SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]
_WARM = 2  # steps before recording: the first ones allocate what all later ones use


class Step:
    """A model that learns, with its optimiser; begun afresh for every run."""

    def __init__(
        self,
        model: Any,
        settings: Train,
        device: str,
        record: bool = True,
        init: str = "pretrained",
    ) -> None:
        self.model, self.settings, self.device = model.to(device), settings, torch.device(device)
        self.draw = draw_all if init == "random" else draw_head
        model.base_model.requires_grad_(init != "frozen")
        self.start = {name: weight.detach().clone() for name, weight in model.named_parameters()}
        self.rate = torch.zeros((), device=device)
        self.loss = torch.zeros((), dtype=torch.float64, device=device)
        self.optimizer = _optimizer(model, self.rate, settings.decay, self.device)
        self.records = record and self.device.type == "cuda"
        self.graphs: dict[int, tuple[torch.cuda.CUDAGraph, Batch]] = {}
        self.pool: Any = None

    def begin(self, seed: int, examples: list[Batch]) -> None:
        """Go back to the weights of the start and a fresh head; one example a width is recorded."""
        self.model.train()
        for batch in examples:
            if self.records and batch.ids.shape[1] not in self.graphs:
                self._record(batch)
        with torch.no_grad():
            for name, weight in self.model.named_parameters():
                weight.copy_(self.start[name])
        self.draw(self.model, seed)
        for memory in self.optimizer.state.values():
            for tensor in memory.values():
                tensor.zero_()
        self.loss.zero_()
        torch.manual_seed(seed)  # from here on the dice are dropout's alone

    def __call__(self, batch: Batch, rate: float) -> None:
        """Learn from one batch; nothing here waits for the device."""
        self.rate.fill_(rate)
        if not self.records:
            self._work(batch)
            return
        graph, held = self.graphs[batch.ids.shape[1]]
        held.copy_(batch)
        graph.replay()

    def _work(self, batch: Batch) -> None:
        self.optimizer.zero_grad(set_to_none=True)
        with self._half(), sdpa_kernel(_ATTENTION):
            logits = logits_of(self.model, batch)
        loss = loss_of(logits.float(), batch)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.settings.clip)
        self.optimizer.step()
        self.loss += loss.detach()

    def _half(self) -> AbstractContextManager[Any]:
        """Products in bfloat16 on a GPU; no cache, whose casts a recording would not repeat."""
        if self.device.type != "cuda":
            return nullcontext()
        return torch.autocast("cuda", torch.bfloat16, cache_enabled=False)

    def _record(self, batch: Batch) -> None:
        """Record a step over a batch of this width; the weights are not kept as they were."""
        held, side = batch.clone(), torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(_WARM):
                self._work(held)
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self.pool):
            self._work(held)
        self.pool = self.pool or graph.pool()
        self.graphs[batch.ids.shape[1]] = graph, held


def loss_of(logits: Tensor, batch: Batch) -> Tensor:
    """Mean cross-entropy of the classes, or mean squared error of a number; filling left out."""
    if logits.shape[1] == 1:
        each = (logits[:, 0] - batch.gold) ** 2
    else:
        each = functional.cross_entropy(logits, batch.gold, reduction="none")
    return (each * batch.weight).sum() / batch.weight.sum()


def _optimizer(
    model: Any, rate: Tensor, decay: float, device: torch.device
) -> torch.optim.Optimizer:
    """AdamW (Loshchilov and Hutter 2019); biases and norms do not decay."""
    weights = list(model.parameters())
    groups = [
        {"params": [weight for weight in weights if weight.dim() > 1], "weight_decay": decay},
        {"params": [weight for weight in weights if weight.dim() <= 1], "weight_decay": 0.0},
    ]
    on_gpu = device.type == "cuda"
    return torch.optim.AdamW(groups, lr=rate, eps=1e-6, fused=on_gpu, capturable=on_gpu)
