"""The training run: epochs of batches, looks at dev, checkpoints, and the finished folder."""

from __future__ import annotations

import json
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from transformers import MarianMTModel, MarianTokenizer

from headcount.atomic import write_bytes

from . import checkpoint
from .config import Config, Phase
from .corpus import Layout, lay_rows
from .evaluate import bleu, dev_loss, translate
from .model import build_model, trained_parameters
from .prepare import Prepared, prepare
from .schedule import dial_table, learning_rate, snapshot_steps
from .step import Step
from .weights import Weights, spread

__all__ = ["Run", "train"]

_SPEED_SECONDS = 20.0  # after which a time limit may shorten the schedule
_CLOSING_SECONDS = 20.0  # kept back from a time limit for the last look at dev


def train(
    config: Config, data: Path | None, out: Path, device: str, time_limit: float | None = None
) -> MarianMTModel:
    """Train a translator, going on from the last whole checkpoint in the folder if there is one."""
    prepared = prepare(config, data, out)
    run = Run(config, prepared, out, device, time_limit)
    run.resume()
    run.go()
    return run.finish()


class Run:
    """A training run in a folder; killed anywhere, it goes on to the same weights."""

    def __init__(
        self,
        config: Config,
        prepared: Prepared,
        out: Path,
        device: str,
        time_limit: float | None = None,
    ) -> None:
        self.config, self.prepared, self.out, self.device = config, prepared, out, device
        self.settings = config.train
        self.time_limit, self.started = time_limit, time.monotonic()
        self.steps, self.step, self.epoch, self.within = config.train.steps, 0, 0, 0
        self.epoch_start = 0
        self.curve: list[dict[str, Any]] = []
        self.busy, self.stepped = 0.0, 0  # seconds and steps of this process, looks left out
        self.fitted = time_limit is None
        self.tokenizer = MarianTokenizer.from_pretrained(prepared.folder)
        self._build()

    def _build(self) -> None:
        vocabulary = len(self.tokenizer)
        model = build_model(self.config.model, vocabulary, self.settings.seed).to(self.device)
        self.judge = build_model(self.config.model, vocabulary, self.settings.seed).to(self.device)
        self.model = model.to(torch.bfloat16) if self.device == "cuda" else model
        # The average starts from the judge's weights, which bfloat16 has not rounded.
        exact = torch.cat([p.detach().flatten() for p in trained_parameters(self.judge)])
        self.weights = Weights(trained_parameters(self.model))
        zero = torch.zeros_like(exact)
        self.weights.load({"master": exact, "average": exact, "mean": zero, "square": zero})
        spread(self.weights.average, trained_parameters(self.judge))
        self.judge.requires_grad_(False)
        table = dial_table(self.settings, self.steps).to(self.device)
        corpus = self.prepared.train.to(self.device)
        self.stride = Step(self.model, self.weights, corpus, table, self.settings)
        torch.manual_seed(self.settings.seed)  # from here on the dice are dropout's alone

    def resume(self) -> None:
        """Go back to the last whole checkpoint, if there is one."""
        found = checkpoint.load_last(self.out / "checkpoints")
        if found is None:
            return
        tensors, state = found
        self.weights.load({name: tensors[name].to(self.device) for name in self.weights.tensors})
        torch.set_rng_state(tensors["dice"])
        if "cuda_dice" in tensors:
            torch.cuda.set_rng_state(tensors["cuda_dice"])
        self.step, self.steps = state["step"], state["steps"]
        self.epoch, self.within, self.epoch_start = (
            state[key] for key in ("epoch", "within", "epoch_start")
        )
        self.curve = state["curve"]
        self.stride.sums.copy_(torch.tensor(state["sums"], dtype=torch.float64))
        self.stride.done.fill_(self.step)
        self._set_table()
        print(f"going on from step {self.step}", flush=True)

    def go(self) -> None:
        """Take the steps that are left."""
        self.model.train()
        layout = self._layout()
        if self.device == "cuda":
            self.stride.record(layout)
        self._tick()
        while self.step < self.steps:
            if self.within == self.batches:
                self.epoch, self.within, self.epoch_start = self.epoch + 1, 0, self.step
                layout = self._layout()
            self.stride(layout, self.within)
            self.step, self.within = self.step + 1, self.within + 1
            if self.step in snapshot_steps(self.steps, self.settings.snapshots):
                self._snapshot()
            if self._look() and self._stale():
                self.steps = self.step

    def _layout(self) -> Layout:
        """This epoch's rows: a function of seed, epoch and phase alone."""
        chosen = self.prepared.chosen(self._phase(), self.epoch)
        order = torch.Generator().manual_seed(self.settings.seed * 1_000_003 + self.epoch)
        settings = self.settings
        layout = lay_rows(self.prepared.train, chosen, settings.length, settings.rows, order)
        if self.epoch == 0:
            print(f"{layout.left_out} pairs are longer than a row and left out", flush=True)
        self.batches = len(layout.rows) // settings.rows
        self.pairs_a_step = (len(chosen) - layout.left_out) / self.batches
        return layout.to(self.device)

    def _phase(self) -> Phase:
        share = self.epoch_start / self.steps
        phases = self.settings.phases
        return next((phase for phase in phases if share < phase.until), phases[-1])

    def _look(self) -> bool:
        """Log, look at dev and save where it is time; whether dev was looked at."""
        settings, last = self.settings, self.step >= self.steps
        looked = last or self.step % settings.dev_every == 0
        if looked or self.step % settings.log_every == 0:
            self._log(looked)
        if self.step % settings.save_every == 0 and not last:
            self._save()
        return looked

    def _log(self, looked: bool) -> None:
        entry = self._measure()
        if looked:
            entry |= self._judge()
            self.curve.append(entry)
            write_bytes(self.out / "curve.json", json.dumps(self.curve, indent=1).encode())
        print(" ".join(f"{key} {_short(value)}" for key, value in entry.items()), flush=True)
        self._fit_limit()
        self._tick()

    def _measure(self) -> dict[str, Any]:
        """The training loss since the last reading, and the speed of this process."""
        loss, plain, tokens = self.stride.sums.tolist()  # waits for the device
        self._tock()
        self.stride.sums.zero_()
        return {
            "step": self.step,
            "epoch": round(self.epoch + self.within / self.batches, 2),
            "rate": learning_rate(self.step - 1, self.settings, self.steps),
            "loss": loss / max(tokens, 1),
            "plain": plain / max(tokens, 1),
            "norm": self.weights.norm.item(),
            "steps_a_second": self.speed,
            "pairs_a_second": self.speed * self.pairs_a_step,
            "seconds": round(time.monotonic() - self.started, 1),
        }

    def _judge(self) -> dict[str, Any]:
        pairs = self.prepared.splits.dev[: self.settings.dev_sentences]
        dice = torch.get_rng_state()
        told = translate(
            self.judge, self.tokenizer, [p.source for p in pairs], beams=1, batch=1024, longest=64
        )
        length = max(self.settings.length, int(self.prepared.dev.widths.max()))
        loss = dev_loss(self.judge, self.prepared.dev, length)
        torch.set_rng_state(dice)
        return {"dev_loss": loss, "dev_bleu": bleu(told, [p.target for p in pairs])["bleu"]}

    def _stale(self) -> bool:
        """Whether dev BLEU has not risen for as many looks as there is patience."""
        seen = [entry["dev_bleu"] for entry in self.curve]
        best = max(range(len(seen)), key=seen.__getitem__)
        return bool(self.settings.patience) and len(seen) - 1 - best >= self.settings.patience

    def _fit_limit(self) -> None:
        """Once the speed is known, shorten the schedule so that it ends within the time limit."""
        if self.fitted or self.time_limit is None:
            return
        if self.busy < min(_SPEED_SECONDS, self.time_limit / 10):
            return
        self.fitted = True
        overhead = 1.15  # looks at dev
        left = self.time_limit - (time.monotonic() - self.started) - _CLOSING_SECONDS
        possible = self.step + int(left * self.speed / overhead)
        if possible < self.steps:
            self.steps = max(possible, self.step + 1)
            self._set_table()
            print(f"{self.steps} steps fit the time limit", flush=True)

    def _set_table(self) -> None:
        self.stride.table[: self.steps].copy_(dial_table(self.settings, self.steps))

    def _save(self) -> None:
        tensors = {**self.weights.tensors, "dice": torch.get_rng_state()}
        if self.device == "cuda":
            tensors["cuda_dice"] = torch.cuda.get_rng_state()
        state = {
            "steps": self.steps,
            "epoch": self.epoch,
            "within": self.within,
            "epoch_start": self.epoch_start,
            "sums": self.stride.sums.tolist(),
            "curve": self.curve,
        }
        checkpoint.save(self.out / "checkpoints", self.step, tensors, state)
        self._tick()

    def _snapshot(self) -> None:
        """Put the averaged weights by for the dynamics command."""
        folder = self.out / "snapshots"
        folder.mkdir(exist_ok=True)
        data = safetensors.torch.save({"average": self.weights.average.cpu()})
        write_bytes(folder / f"step-{self.step:08d}.safetensors", data)

    @property
    def speed(self) -> float:
        """Steps a second."""
        return self.stepped / max(self.busy, 1e-9)

    def _tick(self) -> None:
        self._since, self._from = time.monotonic(), self.step

    def _tock(self) -> None:
        self.busy += time.monotonic() - self._since
        self.stepped += self.step - self._from

    def finish(self) -> MarianMTModel:
        """Write the averaged model and the tokenizer as a folder that transformers loads."""
        final = build_model(self.config.model, len(self.tokenizer), self.settings.seed)
        state = {name: tensor.cpu().clone() for name, tensor in self.judge.state_dict().items()}
        final.load_state_dict(state)
        final.save_pretrained(self.out / "final")
        self.tokenizer.save_pretrained(self.out / "final")
        speed = {
            "steps": self.steps,
            "steps_a_second": self.speed,
            "pairs_a_second": self.speed * self.pairs_a_step,
            "busy_seconds": self.busy,
            "config": asdict(self.config),
        }
        write_bytes(self.out / "run.json", json.dumps(speed, indent=1).encode())
        return final.eval()


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
