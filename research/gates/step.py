"""One step of a translator that runs through gates; on a GPU recorded once, then replayed."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor
from transformers import MarianMTModel

from headcount.models.subject import Subject
from headcount.rooms.gates.gates import Gates, Target
from research.translator.corpus import Corpus
from research.translator.loss import distilled_loss
from research.translator.model import logits_of
from research.translator.step import Step, compile_layers
from research.translator.weights import Weights

from .config import Config
from .scaled import Scaled

__all__ = ["GatedStep"]


class GatedStep(Step):
    """The recipe's step with scaled heads: drawn gates and their price, or heads that are fixed."""

    def __init__(
        self,
        subject: Subject,
        weights: Weights,
        corpus: Corpus,
        table: Tensor,
        config: Config,
        gates: Gates | None,
        target: Target | None,
        scaled: Scaled,
        teacher: MarianMTModel,
    ) -> None:
        settings = replace(config.train, compile=config.train.compile and table.is_cuda)
        super().__init__(subject.model, weights, corpus, table, settings)
        self.teacher, self.share = teacher, config.schedule.teacher
        if settings.compile:
            compile_layers(teacher)
        self.distilled = torch.compile(distilled_loss) if table.is_cuda else distilled_loss
        self.gates, self.target, self.scaled = gates, target, scaled
        self.fixed = torch.ones(len(subject.heads), device=table.device)
        self.learning = torch.zeros((), device=table.device)  # 1 while the gates learn
        self.price_from = config.schedule.price_from
        if gates is not None:
            order = {head: place for place, head in enumerate(subject.heads)}
            self.places = torch.tensor([order[h] for h in gates.heads], device=table.device)
            rate = config.schedule.gate_rate
            self.adam = torch.optim.Adam([gates.log_a], lr=rate, capturable=table.is_cuda)

    def work(self) -> None:
        """Draw the gates, run the pairs through them, move weights and gates."""
        settings, model = self.settings, self.model.config
        start, pad = model.decoder_start_token_id, model.pad_token_id
        batch = self.corpus.batch(self.rows, self.widths, settings.length, start, pad)
        count = (batch.labels >= 0).sum()
        with torch.no_grad():
            taught = logits_of(self.teacher, batch)
        scales = self._scales()
        self.scaled.set(scales)
        logits = logits_of(self.model, batch)
        loss, plain = self.distilled(logits, taught, batch.labels, settings.smoothing, self.share)
        (loss / self.tokens).backward()
        self._move_gates(scales, self.scaled.gradient())
        dials = self.table.index_select(0, self.done)[0]
        self.weights.step(self.weights.gradient(), dials, settings.clip)
        self.sums += torch.stack([loss.detach().double(), plain.double(), count.double()])
        self.done += 1

    def fix(self, scales: Tensor) -> None:
        """From here on the heads are as these scales say; the gates rest."""
        self.fixed.copy_(scales)
        self.learning.zero_()

    def forget(self) -> None:
        """Take back what recording did to the gates' optimiser and price."""
        if self.gates is None or self.target is None:
            return
        for state in self.adam.state.values():
            for value in state.values():
                value.zero_()
        self.target.multiplier.zero_()

    def _scales(self) -> Tensor:
        if self.gates is None:
            return self.fixed
        drawn = torch.ones_like(self.fixed).index_copy(0, self.places, self.gates())
        return torch.where(self.learning > 0, drawn, self.fixed)

    def _price(self) -> Tensor:
        if self.gates is None or self.target is None:
            return self.tokens.new_zeros(())
        since = self.done[0] - self.price_from
        self.target.multiplier.mul_(since > 0)  # it does not wander while nothing is asked
        return self.learning * (since >= 0) * self.target(self.gates, since)

    def _move_gates(self, scales: Tensor, gradient: Tensor) -> None:
        if self.gates is None:
            return
        torch.autograd.backward([scales, self._price()], [gradient, None])
        self.gates.log_a.grad.mul_(self.learning)  # type: ignore[union-attr]
        before = self.gates.log_a.detach().clone()
        self.adam.step()
        with torch.no_grad():  # a resting gate keeps its place, whatever Adam remembers
            self.gates.log_a.lerp_(before, 1 - self.learning)
        self.gates.log_a.grad = None
