"""One run: from the converged translator to the same translator with fewer heads."""

from __future__ import annotations

import json
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from torch import Tensor, nn

import headcount as hc
from headcount.records.files import write_bytes
from headcount.records.heads import Head
from headcount.rooms.gates.gates import Gates, Target
from headcount.wiring.valves import valve
from research.packing import pack_weights
from research.translator.clock import Clock
from research.translator.corpus import Corpus, lay_rows
from research.translator.evaluate import bleu, dev_loss, translate
from research.translator.schedule import dial_table
from research.translator.weights import Weights, spread

from .config import Config, Plan
from .counts import packed_counts
from .prepare import Texts
from .scaled import Scaled
from .start import fresh, starting_point
from .step import GatedStep

__all__ = ["Run", "judge_heads"]


class Run:
    """Gates learn, heads are fixed, the rest heals; then the averaged weights are judged."""

    def __init__(
        self,
        config: Config,
        plan: Plan,
        texts: Texts,
        out: Path,
        device: str,
        limit: float | None = None,
    ) -> None:
        self.config, self.plan, self.texts, self.out = config, plan, texts, out
        self.device, self.schedule = device, config.schedule
        self.clock, self.steps = Clock(limit), config.schedule.steps
        self.judge = _subject(config, plan, device)
        self.learner = _subject(config, plan, device)
        names = _learning(self.judge.model, plan)
        exact = torch.cat([_named(self.judge.model)[name].detach().flatten() for name in names])
        if device == "cuda":
            self.learner.model.to(torch.bfloat16)
        self.names = names
        self.learner.model.requires_grad_(False)
        parameters = [_named(self.learner.model)[name].requires_grad_(True) for name in names]
        self.weights = Weights(parameters, exact)
        self.judge.model.requires_grad_(False)
        spread(self.weights.average, [_named(self.judge.model)[name] for name in names])
        self.gates, self.target = self._gates()
        self.log: list[dict[str, Any]] = []

    def go(self) -> dict[str, Any]:
        """Take all steps and judge."""
        began = time.monotonic()
        self._train(Scaled(self.learner))
        kept = self._kept()
        result = {
            **asdict(self.plan),
            "steps": self.steps,
            "train_seconds": round(time.monotonic() - began, 1),
            "kept": [str(head) for head in kept],
            "log": self.log,
            "scores": judge_heads(self.judge, kept, self.texts, self.out, self.plan.name),
        }
        if self.gates is not None and not self.plan.scratch:  # the same heads shut at the start
            start, name = starting_point(self.config, self.device), f"{self.plan.name}-untouched"
            result["untouched"] = judge_heads(start, kept, self.texts, self.out, name)
        self._write(result)
        return result

    def _train(self, scaled: Scaled) -> None:
        train = self.config.train
        table = dial_table(train, self.schedule.steps).to(self.device)
        stride = GatedStep(
            self.learner,
            self.weights,
            self.texts.train,
            table,
            self.config,
            self.gates,
            self.target,
            scaled,
            self._teacher(),
        )
        torch.manual_seed(1000 + self.plan.seed)
        self.learner.model.train()
        layout, epoch = self._epoch(0), 0
        self._record(stride, layout)
        stride.fixed.copy_(self._scales(self.learner.heads))
        if self.gates is not None:
            stride.learning.fill_(1.0)
        elif self.plan.scratch:
            stride.fixed.copy_(self._scales(self._scratch_heads()))
        within, step = 0, 0
        self.clock.start(0)
        while step < self.steps:
            if within == len(layout.rows) // train.rows:
                epoch, within = epoch + 1, 0
                layout = self._epoch(epoch)
            if self.gates is not None and step == self.schedule.gate_steps:
                stride.fix(self._scales(self._kept()))
            stride(layout, within)
            within, step = within + 1, step + 1
            if step % 200 == 0:
                self._note(step, stride)

    def _teacher(self) -> Any:
        """The whole translator, which never learns."""
        model = starting_point(self.config, self.device).model.eval().requires_grad_(False)
        return model.to(torch.bfloat16) if self.device == "cuda" else model

    def _record(self, stride: GatedStep, layout: Any) -> None:
        if self.device != "cuda":
            return
        held = None if self.gates is None else self.gates.log_a.detach().clone()
        stride.record(layout)
        stride.forget()
        if self.gates is not None and held is not None:
            with torch.no_grad():
                self.gates.log_a.copy_(held)

    def _note(self, step: int, stride: GatedStep) -> None:
        loss, plain, tokens = stride.sums.tolist()
        stride.sums.zero_()
        entry: dict[str, Any] = {"step": step, "loss": loss / tokens, "plain": plain / tokens}
        if self.gates is not None and self.target is not None:
            entry["expected"] = self.gates.expected().item()
            entry["open"] = len(self.gates.kept())
            entry["price"] = self.target.multiplier.item()
        self.log.append({key: round(value, 4) for key, value in entry.items()})
        print(self.plan.name, self.log[-1], flush=True)
        self.clock.stop(step)
        fitting = self.clock.fit(step, self.steps)
        if fitting < self.steps:  # the rate falls to zero at the last step that there is time for
            print(f"{fitting} of {self.steps} steps fit the time limit", flush=True)
            self.steps = fitting
            stride.table[:fitting].copy_(dial_table(self.config.train, fitting))
        self.clock.start(step)

    def _epoch(self, epoch: int) -> Any:
        settings, order = self.config.train, torch.Generator()
        order.manual_seed((1000 + self.plan.seed) * 1_000_003 + epoch)
        chosen = self.texts.chosen(epoch)
        layout = lay_rows(self.texts.host, chosen, settings.length, settings.rows, order)
        return layout.to(self.device)

    def _gates(self) -> tuple[Gates | None, Target | None]:
        if not self.plan.stacks:
            return None, None
        heads = [head for head in self.learner.heads if head.stack in self.plan.stacks]
        schedule = self.schedule
        gates = Gates(heads, start=schedule.gate_start).to(self.device)
        target = Target(
            self.plan.keep, steps=schedule.ramp, rate=schedule.rate, stiffness=schedule.stiffness
        )
        return gates, target.to(self.device)

    def _kept(self) -> list[Head]:
        """All heads that are left: those of the ungated stacks, and the most open of the others."""
        if self.gates is None:
            return self._scratch_heads() if self.plan.scratch else list(self.learner.heads)
        open_ = set(self.gates.kept(self.plan.keep))
        return [h for h in self.learner.heads if h.stack not in self.plan.stacks or h in open_]

    def _scratch_heads(self) -> list[Head]:
        if self.plan.scratch == "all":
            return list(self.learner.heads)
        told = json.loads((self.out / f"{self.plan.scratch}.json").read_text())["kept"]
        return [head for head in self.learner.heads if str(head) in told]

    def _scales(self, kept: list[Head]) -> Tensor:
        there = set(kept)
        return torch.tensor([float(head in there) for head in self.learner.heads]).to(self.device)

    def _write(self, result: dict[str, Any]) -> None:
        """The result, and the weights that learned in int8."""
        write_bytes(self.out / f"{self.plan.name}.json", json.dumps(result, indent=1).encode())
        learned = {name: _named(self.judge.model)[name].detach().cpu() for name in self.names}
        data = safetensors.torch.save(pack_weights(learned))
        write_bytes(self.out / f"{self.plan.name}.safetensors", data)


def judge_heads(
    subject: hc.Subject, kept: list[Head], texts: Texts, out: Path, name: str
) -> dict[str, Any]:
    """BLEU with beam 4 and loss of every part, with only these heads; translations are kept, and
    what BLEU counts in each of them lies in the JSON."""
    model: Any = subject.model
    shut = {head: 0.0 for head in subject.heads if head not in set(kept)}
    scores: dict[str, Any] = {}
    with valve(subject, shut):
        for part, pairs in texts.parts.items():
            told = translate(model, subject.tokenizer, [p.source for p in pairs], batch=640)
            right = [pair.target for pair in pairs]
            scores[part] = bleu(told, right) | {"counts": packed_counts(told, right)}
            scores[part]["loss"] = _loss(model, texts.corpora[part])
            write_bytes(out / f"{name}.{part}.txt", ("\n".join(told) + "\n").encode())
    print(name, {part: score["bleu"] for part, score in scores.items()}, flush=True)
    return scores


def _loss(model: Any, corpus: Corpus) -> float:
    return dev_loss(model, corpus, int(corpus.widths.max()))


def _subject(config: Config, plan: Plan, device: str) -> hc.Subject:
    made = fresh(config, plan.seed, device) if plan.scratch else starting_point(config, device)
    for module in made.model.modules():
        if getattr(module, "dropout", 0) == made.model.config.dropout:
            module.dropout = config.schedule.dropout
    return made


def _named(model: nn.Module) -> dict[str, nn.Parameter]:
    return dict(model.named_parameters())


def _learning(model: nn.Module, plan: Plan) -> list[str]:
    """The parameters that learn: the encoder's layers, or everything but the sinusoids."""
    wanted = "model.encoder.layers." if plan.learn == "enc" else ""
    return [n for n in _named(model) if n.startswith(wanted) and "embed_positions" not in n]
