"""All runs, seed by seed, each written down as it ends: a stopped sweep goes on."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import headcount as hc
from headcount.errors import ModelError
from headcount.records.journal import Journal
from headcount.records.provenance import collect, hash_strings

from .config import Config
from .encoded import Encoded, encode
from .finetune import Split, finetune, make_deterministic
from .model import build
from .rows import LABELS, METRICS, Rows, read_rows
from .score import SCORES, statistics_of
from .step import Step
from .toy import toy_rows, toy_subject

__all__ = ["Sweep", "fingerprint"]


def fingerprint(config: Config) -> dict[str, Any]:
    """What must be equal for an old run to count: how it was trained, not which runs there are."""
    each = {task: asdict(each) for task, each in config.each.items()}
    start = {} if config.init == "pretrained" else {"init": config.init}
    return {"train": asdict(config.train), "each": each, "toy": config.toy, **start}


class Sweep:
    """Models on tasks; models, rows and recordings are kept from run to run."""

    def __init__(
        self,
        config: Config,
        data: Path | None,
        device: str,
        *,
        save: Path | None = None,
        record: bool = True,
    ) -> None:
        self.config, self.data, self.device = config, data, device
        self.save, self.record = save, record
        self.subjects: dict[str, hc.Subject] = {}
        self.steps: dict[tuple[str, int], Step] = {}
        self.rows: dict[str, Rows] = {}
        self.splits: dict[tuple[str, str], Split] = {}
        make_deterministic()

    def go(self, journal: Journal, time_limit: float | None = None) -> bool:
        """Make every run that the journal lacks; false if the time would not have sufficed."""
        began, took = time.monotonic(), dict[tuple[str, str], float]()
        for model, task, seed in self._wanted():
            if f"{model}/{task}/{seed}" in journal.done:
                continue
            start = time.monotonic()
            if time_limit and start - began + took.get((model, task), 0.0) > time_limit:
                print(f"stopped before {model}/{task}/{seed}: the time limit is near", flush=True)
                return False
            result = self.run(model, task, seed)
            journal.append(f"{model}/{task}/{seed}", result)
            took[model, task] = time.monotonic() - start
            print(f"{model}/{task}/{seed}: {_short(result)}", flush=True)
        return True

    def run(self, model: str, task: str, seed: int) -> dict[str, Any]:
        """One run: its outputs for every dev row, and where they come from."""
        rows, split = self._rows(task), self._split(model, task)
        step = self._step(model, len(LABELS[task]) or 1)
        found = finetune(step, split, self.config.each[task], seed)
        if self.save is not None:
            self._save(step, model, task, seed)
        longest = self.config.train.widths[-1]
        return {
            "model": model,
            "task": task,
            "seed": seed,
            "init": self.config.init,
            **found,
            "rows": {
                "train": len(split.train),
                "dev": len(split.dev),
                f"train_at_{longest}_tokens": int((split.train.lengths == longest).sum()),
                f"dev_at_{longest}_tokens": int((split.dev.lengths == longest).sum()),
            },
            "note": rows.note,
            "provenance": self._provenance(model, rows),
        }

    def _wanted(self) -> Iterator[tuple[str, str, int]]:
        for seed in range(self.config.seeds):
            for model in self.config.models:
                for task in self.config.tasks:
                    yield model, task, seed

    def _subject(self, model: str) -> hc.Subject:
        if model not in self.subjects:
            held = toy_subject() if model == "toy" else hc.load(model, device="cpu")
            if held.tokenizer is None:
                raise ModelError(f"'{model}' has no tokenizer, and the tasks are texts.")
            self.subjects[model] = held
        return self.subjects[model]

    def _step(self, model: str, outputs: int) -> Step:
        if (model, outputs) not in self.steps:
            built = build(self._subject(model), outputs)
            made = Step(built, self.config.train, self.device, self.record, self.config.init)
            self.steps[model, outputs] = made
        return self.steps[model, outputs]

    def _rows(self, task: str) -> Rows:
        if task not in self.rows:
            toy, data = self.config.toy, self.data
            self.rows[task] = toy_rows(task, toy) if data is None else read_rows(task, data)
        return self.rows[task]

    def _split(self, model: str, task: str) -> Split:
        """The rows as this model's tokens; models that share a vocabulary share them."""
        tokenizer: Any = self._subject(model).tokenizer
        key = hash_strings(sorted(tokenizer.get_vocab())), task
        if key not in self.splits:
            rows = self._rows(task)
            train, dev = (self._encode(model, task, part) for part in (rows.train, rows.dev))
            self.splits[key] = Split(train, dev)
        return self.splits[key]

    def _encode(self, model: str, task: str, rows: Any) -> Encoded:
        tokenizer, longest = self._subject(model).tokenizer, self.config.train.widths[-1]
        assert tokenizer is not None  # checked when the subject was loaded
        return encode(rows, tokenizer, LABELS[task], longest).to(self.device)

    def _save(self, step: Step, model: str, task: str, seed: int) -> None:
        assert self.save is not None
        folder, labels = self.save / f"{model}-{task}-{seed}", LABELS[task]
        if labels:
            step.model.config.id2label = dict(enumerate(labels))
            step.model.config.label2id = {label: place for place, label in enumerate(labels)}
        step.model.save_pretrained(folder)
        self._subject(model).tokenizer.save_pretrained(folder)  # type: ignore[union-attr]

    def _provenance(self, model: str, rows: Rows) -> dict[str, Any]:
        told = [f"{row.text}\t{row.second}\t{row.label}" for row in (*rows.train, *rows.dev)]
        subject = self._subject(model)
        return collect(
            model=subject.source,
            weights=subject.weights_hash,
            data=hash_strings(told),
            device=_device_name(self.device),
        )


def _device_name(device: str) -> str:
    import torch

    return torch.cuda.get_device_name() if device.startswith("cuda") else "CPU"


def _short(result: dict[str, Any]) -> str:
    loss = " ".join(f"{value:.3f}" for value in result["loss"])
    told = METRICS[result["task"]][0]
    value = SCORES[told].value(statistics_of(result, told))
    times = f"{result['steps']} steps in {result['train_seconds']} of {result['seconds']} s"
    return f"{told} {value:.4f}, {times}, loss by epoch {loss}"
