"""Prove that a saved model loads: another process loads it and compares outputs on an input."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from headcount.errors import ModelError
from headcount.models.dummy_forward import core_of, probe_inputs, quiet_arguments
from headcount.models.guards import eval_mode, quiet
from headcount.models.saving.routes import Route, best_auto_class
from headcount.models.subject import Subject

_PROGRAM = Path(__file__).with_name("fresh_load.py")


@dataclass(frozen=True)
class LoadCheck:
    """A saved folder, and what is needed to compare it with the model that was saved."""

    folder: Path
    subject: Subject
    route: Route
    #: How far outputs may be apart; by default as two runs of the same weights are.
    room: float | None = None

    @property
    def loader(self) -> str:
        """The class to load with: an auto class where one gives the model's class."""
        auto = best_auto_class(self.route.config.model_type, self.route.architecture)
        return auto or self.route.architecture

    def described(self, tensors: Path) -> dict[str, Any]:
        """The job of the other process; inputs and output go into a file."""
        arguments = quiet_arguments(self.subject.model)
        inputs = small_inputs(self.subject)
        output = model_output(self.subject, inputs | arguments)
        save_file({name: value.contiguous() for name, value in inputs.items()} | output, tensors)
        return {
            "folder": str(self.folder),
            "loader": self.loader,
            "code": self.route.code,
            "device": str(self.subject.device),
            "dtype": str(self.subject.dtype).removeprefix("torch."),
            "tensors": str(tensors),
            "arguments": arguments,
            "heads": [str(head) for head in self.subject.heads],
        }


def small_inputs(subject: Subject) -> dict[str, torch.Tensor]:
    """A few tokens, or drawn pixels or sound."""
    inputs = probe_inputs(core_of(subject.model))
    dice = torch.Generator().manual_seed(0)
    for name, value in inputs.items():
        if value.is_floating_point():
            inputs[name] = torch.randn(value.shape, generator=dice).to(value)
    return inputs


def model_output(subject: Subject, inputs: dict[str, Any]) -> dict[str, torch.Tensor]:
    """What the model gives, in evaluation mode."""
    with quiet(), eval_mode(subject.model), torch.no_grad():
        return {"output": subject.model(**inputs)[0].contiguous()}


def apart_of(subject: Subject, other: Subject) -> float:
    """How far apart two models are on a small input, of the largest number that comes out."""
    inputs = small_inputs(subject)
    return apart(*(model_output(each, inputs)["output"].double() for each in (subject, other)))


def apart(one: torch.Tensor, other: torch.Tensor) -> float:
    """The largest difference of two outputs, of the largest number that comes out."""
    return float((one - other).abs().max() / one.abs().max().clamp_min(1e-30))


def room_of(dtype: torch.dtype) -> float:
    """How far apart two runs of the same weights may be, of the largest number that comes out."""
    return 1e-5 if dtype in (torch.float32, torch.float64) else 2e-2


def check_fresh(jobs: Sequence[LoadCheck]) -> list[float]:
    """How far apart each model is when it is loaded again; raises where one is not the same."""
    with tempfile.TemporaryDirectory() as scratch:
        described = [
            job.described(Path(scratch, f"{number}.safetensors")) for number, job in enumerate(jobs)
        ]
        jobs_file = Path(scratch, "jobs.json")
        jobs_file.write_text(json.dumps(described), encoding="utf8")
        # Code that models bring is kept in a folder that goes away.
        own = {"HF_MODULES_CACHE": str(Path(scratch, "modules")), "HF_HUB_OFFLINE": "1"}
        command = [sys.executable, "-P", str(_PROGRAM), str(jobs_file)]
        done = subprocess.run(command, capture_output=True, text=True, env=os.environ | own)
    if done.returncode != 0 or not done.stdout.strip():
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise ModelError(f"The program that loads a saved model again failed: {last}")
    results = json.loads(done.stdout.strip().splitlines()[-1])
    return [_checked(job, result) for job, result in zip(jobs, results, strict=True)]


def _checked(job: LoadCheck, result: dict[str, Any]) -> float:
    if "error" in result:
        raise ModelError(f"The saved model could not be loaded again: {result['error']}")
    apart = max(result["plain"], result["own"])
    if not apart <= (job.room or room_of(job.subject.dtype)):
        raise ModelError(
            f"The saved model gives other outputs when it is loaded again ({apart:.1e} apart)."
        )
    return float(apart)
