"""One optimiser step; on a GPU the whole of it is recorded once and then replayed."""

from __future__ import annotations

from dataclasses import fields

import torch
from torch import Tensor
from transformers import MarianMTModel

from .config import Train
from .corpus import Batch, Corpus, Layout, most_slots
from .loss import summed_loss
from .model import logits_of
from .weights import Weights

__all__ = ["Step", "compile_layers"]


class Step:
    """Batch, forward, backward, Adam and average, reading rows that are copied in beforehand."""

    def __init__(
        self, model: MarianMTModel, weights: Weights, corpus: Corpus, table: Tensor, settings: Train
    ) -> None:
        self.model, self.weights, self.corpus, self.table = model, weights, corpus, table
        self.settings = settings
        device = table.device
        self.done = torch.zeros(1, dtype=torch.long, device=device)
        self.sums = torch.zeros(3, dtype=torch.float64, device=device)  # loss, plain loss, tokens
        self.tokens = torch.ones((), device=device)
        shape = (settings.rows, most_slots(settings.length))
        self.rows = torch.zeros(shape, dtype=torch.int, device=device)
        self.widths = torch.ones(settings.rows, dtype=torch.int, device=device)
        self.graph: torch.cuda.CUDAGraph | None = None
        self.loss = torch.compile(summed_loss) if settings.compile else summed_loss
        if settings.compile:
            compile_layers(model)

    def __call__(self, layout: Layout, number: int) -> None:
        """Take batch `number` of the layout; nothing here waits for the device."""
        self._fill(layout, number)
        if self.graph is None:
            self.work()
        else:
            self.graph.replay()

    def work(self) -> None:
        """The step itself, from the rows in place."""
        settings, config = self.settings, self.model.config
        start, pad = config.decoder_start_token_id, config.pad_token_id
        batch = self.corpus.batch(self.rows, self.widths, settings.length, start, pad)
        count = (batch.labels >= 0).sum()
        if settings.agreement:
            batch = _twice(batch)
        logits = logits_of(self.model, batch)
        loss, plain = self.loss(logits, batch.labels, settings.smoothing, settings.agreement)
        # A fixed number of tokens, not the batch's own: the thin last batch weighs what it holds.
        (loss / self.tokens).backward()
        dials = self.table.index_select(0, self.done)[0]
        self.weights.step(self.weights.gradient(), dials, settings.clip)
        self.sums += torch.stack([loss.detach().double(), plain.double(), count.double()])
        self.done += 1

    def record(self, layout: Layout) -> None:
        """Record the step as a CUDA graph; weights, dice and counters stay as they were."""
        self._fill(layout, 0)
        before = {name: tensor.clone() for name, tensor in self.weights.tensors.items()}
        dice, done, sums = torch.cuda.get_rng_state(), self.done.clone(), self.sums.clone()
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                self.work()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self.work()
        self.weights.load(before)
        self.done.copy_(done)
        self.sums.copy_(sums)
        torch.cuda.set_rng_state(dice)
        self.graph = graph

    def _fill(self, layout: Layout, number: int) -> None:
        part = slice(number * self.settings.rows, (number + 1) * self.settings.rows)
        self.rows.copy_(layout.rows[part])
        self.widths.copy_(layout.widths[part])
        self.tokens.fill_(layout.tokens)


def compile_layers(model: MarianMTModel) -> None:
    """Compile a layer at a time: the twelve of them are two programs, ready in seconds."""
    for layer in (*model.model.encoder.layers, *model.model.decoder.layers):
        layer.compile(dynamic=False)


def _twice(batch: Batch) -> Batch:
    return Batch(*(torch.cat([getattr(batch, f.name)] * 2) for f in fields(batch)))
