"""The training run: epochs of batches, looks at dev, checkpoints, and the finished folder."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from transformers import MarianMTModel, MarianTokenizer

from headcount.records.files import write_bytes

from . import checkpoint
from .clock import Clock
from .config import Config, Phase
from .corpus import Layout, lay_rows
from .evaluate import bleu, dev_loss, translate
from .model import build_model, trained_parameters
from .prepare import Prepared, prepare
from .schedule import dial_table, learning_rate, snapshot_steps
from .step import Step
from .weights import Weights, spread

__all__ = ["Run", "train"]


def train(
    config: Config, data: Path | None, out: Path, device: str, time_limit: float | None = None
) -> MarianMTModel:
    """Train a translator, going on from the last whole checkpoint in the folder if there is one."""
    run = Run(config, prepare(config, data, out), out, device, time_limit)
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
        self.settings, self.clock = config.train, Clock(time_limit)
        self.steps, self.step = config.train.steps, 0
        self.epoch, self.epoch_start, self.within = 0, 0, 0  # its first step, its batches done
        self.curve: list[dict[str, Any]] = []
        self.tokenizer = MarianTokenizer.from_pretrained(prepared.folder)
        self._build()

    def _build(self) -> None:
        """The model that learns, in half precision on a GPU, and one that shows the average."""
        vocabulary, settings = len(self.tokenizer), self.settings
        self.judge = build_model(self.config.model, vocabulary, settings.seed).to(self.device)
        self.model = build_model(self.config.model, vocabulary, settings.seed).to(self.device)
        # The weights start from the judge's, which no rounding has touched.
        exact = torch.cat([p.detach().flatten() for p in trained_parameters(self.judge)])
        if self.device == "cuda":
            self.model.to(torch.bfloat16)
        self.weights = Weights(trained_parameters(self.model), exact)
        spread(self.weights.average, trained_parameters(self.judge))
        self.judge.requires_grad_(False)
        table = dial_table(settings, self.steps).to(self.device)
        corpus = self.prepared.train.to(self.device)
        self.stride = Step(self.model, self.weights, corpus, table, settings)
        torch.manual_seed(settings.seed)  # from here on the dice are dropout's alone

    def go(self) -> None:
        """Take the steps that are left."""
        self.model.train()
        layout = self.lay_epoch()
        if self.device == "cuda":
            self.stride.record(layout)
        self.clock.start(self.step)
        while self.step < self.steps:
            if self.within == self.batches:
                self.epoch, self.epoch_start, self.within = self.epoch + 1, self.step, 0
                layout = self.lay_epoch()
            self.stride(layout, self.within)
            self.step, self.within = self.step + 1, self.within + 1
            self._after_step()

    def lay_epoch(self) -> Layout:
        """This epoch's rows: a function of seed, epoch and phase alone."""
        settings, chosen = self.settings, self.prepared.chosen(self._phase(), self.epoch)
        order = torch.Generator().manual_seed(settings.seed * 1_000_003 + self.epoch)
        layout = lay_rows(self.prepared.train, chosen, settings.length, settings.rows, order)
        if self.epoch == 0:
            print(f"{layout.left_out} pairs are longer than a row and left out", flush=True)
        self.batches = len(layout.rows) // settings.rows
        self.pairs_a_step = (len(chosen) - layout.left_out) / self.batches
        return layout.to(self.device)

    def _phase(self) -> Phase:
        share, phases = self.epoch_start / self.steps, self.settings.phases
        return next((phase for phase in phases if share < phase.until), phases[-1])

    def _after_step(self) -> None:
        """Put weights by, log, look at dev and save, each where it is time."""
        settings, last = self.settings, self.step >= self.steps
        if self.step in snapshot_steps(self.steps, settings.snapshots):
            self._snapshot()
        looked = last or self.step % settings.dev_every == 0
        if looked or self.step % settings.log_every == 0:
            self._report(looked)
        if self.step % settings.save_every == 0 and not last:
            self._save()
        if looked and self._stale():
            self.steps = self.step

    def _report(self, looked: bool) -> None:
        entry = self._measure()
        if looked:
            entry |= self._look()
            self.curve.append(entry)
            write_bytes(self.out / "curve.json", json.dumps(self.curve, indent=1).encode())
        print(" ".join(f"{key} {_short(value)}" for key, value in entry.items()), flush=True)
        fitting = self.clock.fit(self.step, self.steps)
        if fitting < self.steps:
            print(f"{fitting} of {self.steps} steps fit the time limit", flush=True)
            self._set_steps(fitting)
        self.clock.start(self.step)

    def _measure(self) -> dict[str, Any]:
        """The training loss since the last reading, and the speed of this process."""
        loss, plain, tokens = self.stride.sums.tolist()  # waits for the device
        self.clock.stop(self.step)
        self.stride.sums.zero_()
        return {
            "step": self.step,
            "epoch": round(self.epoch + self.within / self.batches, 2),
            "rate": learning_rate(self.step - 1, self.settings, self.steps),
            "loss": loss / max(tokens, 1),
            "plain": plain / max(tokens, 1),
            "norm": self.weights.norm.item(),
            "steps_a_second": self.clock.speed,
            "pairs_a_second": self.clock.speed * self.pairs_a_step,
            "seconds": round(self.clock.seconds, 1),
        }

    def _look(self) -> dict[str, Any]:
        """Loss on dev and greedy BLEU on its first sentences, of the averaged weights."""
        pairs, dev = self.prepared.splits.dev[: self.settings.dev_sentences], self.prepared.dev
        sources = [pair.source for pair in pairs]
        told = translate(self.judge, self.tokenizer, sources, beams=1, batch=1024, longest=64)
        loss = dev_loss(self.judge, dev, max(self.settings.length, int(dev.widths.max())))
        return {"dev_loss": loss, "dev_bleu": bleu(told, [pair.target for pair in pairs])["bleu"]}

    def _stale(self) -> bool:
        """Whether dev BLEU has not risen for as many looks as there is patience."""
        seen = [entry["dev_bleu"] for entry in self.curve]
        best = max(range(len(seen)), key=seen.__getitem__)
        return bool(self.settings.patience) and len(seen) - 1 - best >= self.settings.patience

    def _set_steps(self, steps: int) -> None:
        self.steps = steps
        self.stride.table[:steps].copy_(dial_table(self.settings, steps))

    def _save(self) -> None:
        tensors = {**self.weights.tensors, "dice": torch.get_rng_state()}
        if self.device == "cuda":
            tensors["cuda_dice"] = torch.cuda.get_rng_state()
        names = ("steps", "epoch", "epoch_start", "within", "curve")
        state = {name: getattr(self, name) for name in names}
        state["sums"] = self.stride.sums.tolist()
        checkpoint.save(self.out / "checkpoints", self.step, tensors, state)
        self.clock.start(self.step)

    def resume(self) -> None:
        """Go back to the last whole checkpoint, if there is one."""
        found = checkpoint.load_last(self.out / "checkpoints")
        if found is None:
            return
        tensors, state = found
        self.weights.load({name: tensors[name].to(self.device) for name in self.weights.tensors})
        torch.set_rng_state(tensors["dice"])
        if self.device == "cuda":
            torch.cuda.set_rng_state(tensors["cuda_dice"])
        for name in ("step", "epoch", "epoch_start", "within", "curve"):
            setattr(self, name, state[name])
        self._set_steps(state["steps"])
        self.stride.sums.copy_(torch.tensor(state["sums"], dtype=torch.float64))
        self.stride.done.fill_(self.step)
        print(f"going on from step {self.step}", flush=True)

    def _snapshot(self) -> None:
        """Put the averaged weights by for the dynamics command."""
        folder = self.out / "snapshots"
        folder.mkdir(exist_ok=True)
        data = safetensors.torch.save({"average": self.weights.average.cpu()})
        write_bytes(folder / f"step-{self.step:08d}.safetensors", data)

    def finish(self) -> MarianMTModel:
        """Write the averaged model and the tokenizer as a folder that transformers loads."""
        final = build_model(self.config.model, len(self.tokenizer), self.settings.seed)
        state = {name: tensor.cpu().clone() for name, tensor in self.judge.state_dict().items()}
        final.load_state_dict(state)
        final.save_pretrained(self.out / "final")
        self.tokenizer.save_pretrained(self.out / "final")
        note = {
            "steps": self.steps,
            "steps_a_second": self.clock.speed,
            "pairs_a_second": self.clock.speed * self.pairs_a_step,
            "busy_seconds": self.clock.busy,
            "config": asdict(self.config),
        }
        write_bytes(self.out / "run.json", json.dumps(note, indent=1).encode())
        return final.eval()


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
